import assert from "node:assert/strict";
import { test } from "node:test";
import { Redis } from "ioredis";
import { Server } from "../redis/servers.mjs";
import { weather } from "./storm.mjs";

const SOCKETS = 2_000;

test("a storm of reconnections is let in, handled once, and leaves no memory behind", () =>
  weather(SOCKETS));

test("on Redis, a storm of reconnections scans no keys, and none is left without an end", async (t) => {
  const server = await Server.start();
  t.after(() => server.stop());
  await weather(SOCKETS, String(server.port));
  const redis = new Redis(server.port);
  t.after(() => redis.disconnect());
  const used = await redis.info("commandstats");
  const keys = await redis.keys("*");
  // The ids of the messages, and what has not drained of the budgets of handshakes; of sockets that are gone, nothing.
  assert.ok(keys.length >= SOCKETS / 2 && keys.length <= 1.5 * SOCKETS, `${keys.length} keys`);
  const ends = await Promise.all(keys.map((key) => redis.pttl(key)));
  assert.ok(ends.every((ms) => ms !== -1));
  assert.doesNotMatch(used, /cmdstat_(keys|scan)\b/);
});
