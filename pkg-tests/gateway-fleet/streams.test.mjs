import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { fleetCases } from "./cases.mjs";
import { Fleet, move } from "./fleet.mjs";

fleetCases("streams");

test("a socket that another node recovers is the same sender", async (t) => {
  const fleet = await Fleet.start("streams");
  t.after(() => fleet.stop());
  const client = await fleet.client(0);
  const { id } = client;
  // What a node sends tells the client from where on another one has to recover it.
  const told = once(client, "ordered");
  const first = await client.emitWithAck("order", { mid: "recovered-1" });
  await told;
  await move(client, fleet.urls[1]);
  assert.ok(client.recovered);
  assert.equal(client.id, id);
  assert.deepEqual(await client.emitWithAck("order", { mid: "recovered-1" }), first);
});
