// Ids and alarms over two tiers: only what this process finished itself is answered here, and alarms never are.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, before, describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { Server } from "socket.io";
import { io as connectTo } from "socket.io-client";
import { BurstDetector, Deduplicator } from "tidegate";
import { RedisStore } from "tidegate/redis";
import { createGateway } from "tidegate/socket.io";
import { nodesOf, sharedMap, startRedis } from "./shared.mjs";

let redis;
before(async () => {
  redis = await startRedis();
});
after(() => redis.stop());

const stores = { map: sharedMap, redis: () => redis.shared() };
const modes = ["deny-cache", "lease", "eager"];

for (const [name, shared] of Object.entries(stores)) {
  for (const mode of modes) {
    describe(`${name}, ${mode}`, () => {
      const fleet = (count) => {
        const { store, line } = shared();
        const nodes = nodesOf(count, store, { mode });
        const dedups = nodes.map((store) => new Deduplicator({ ttl: "1h", store }));
        /** How many operations a call takes, and what it answers. */
        const counted = async (call) => {
          const before = line.operations;
          const answer = await call();
          return [line.operations - before, answer];
        };
        return { nodes, dedups, counted };
      };

      test("an id that was first here is seen here; of others the shared store is asked", async () => {
        const { dedups, counted } = fleet(2);
        assert.deepEqual(await counted(() => dedups[0].first("id")), [1, true]);
        assert.deepEqual(await counted(() => dedups[0].first("id")), [0, false]);
        assert.deepEqual(await counted(() => dedups[1].first("id")), [1, false]);
        assert.deepEqual(await counted(() => dedups[1].first("id")), [1, false]);
        assert.deepEqual(await counted(() => dedups[1].has("id")), [1, true]);
      });

      test("finished work is a duplicate with its result, and its payload is compared", async () => {
        const { dedups, counted } = fleet(2);
        const result = { order: 7 };
        const claim = await dedups[0].claim("id", { payload: "a" });
        assert.equal((await dedups[0].claim("id")).status, "in-progress");
        assert.equal((await dedups[1].claim("id")).status, "in-progress");
        assert.equal(await claim.commit(result), true);
        const duplicate = { status: "duplicate", result };
        assert.deepEqual(await counted(() => dedups[0].claim("id")), [0, duplicate]);
        const same = () => dedups[0].claim("id", { payload: "a" });
        assert.deepEqual(await counted(same), [0, duplicate]);
        const other = () => dedups[0].claim("id", { payload: "b" });
        assert.deepEqual(await counted(other), [0, { status: "mismatch" }]);
        assert.deepEqual(await counted(() => dedups[0].has("id")), [0, true]);
        assert.deepEqual(await counted(() => dedups[0].first("id")), [0, false]);
        assert.deepEqual(await counted(() => dedups[1].claim("id")), [1, duplicate]);
      });

      test("a released id has not been seen, and a lost lease commits nothing", async () => {
        const { dedups } = fleet(2);
        const claim = await dedups[0].claim("id");
        await claim.release();
        const taken = await dedups[1].claim("id");
        assert.equal(taken.status, "fresh");
        assert.equal(await claim.commit("late"), false);
        assert.equal((await dedups[0].claim("id")).status, "in-progress");
        assert.equal(await taken.commit("right"), true);
        assert.equal((await dedups[0].claim("id")).result, "right");
      });

      test("run does the work once over the fleet", async () => {
        const { dedups, counted } = fleet(8);
        let runs = 0;
        const work = async () => {
          runs += 1;
          await pause(20);
          return "done";
        };
        const answers = await Promise.all(dedups.map((dedup) => dedup.run("id", work)));
        assert.deepEqual([runs, ...new Set(answers)], [1, "done"]);
        await dedups[0].run("mine", work);
        assert.deepEqual(await counted(() => dedups[0].run("mine", work)), [0, "done"]);
        assert.equal(runs, 2);
      });

      test("one of a hundred is first, wherever they ask", async () => {
        const { dedups } = fleet(8);
        const firsts = await Promise.all(
          Array.from({ length: 100 }, (_, at) => dedups[at % 8].first("id")),
        );
        assert.equal(firsts.filter(Boolean).length, 1);
      });

      test("what this node forgets is new at once, what another forgets within a second", async () => {
        const { dedups } = fleet(2);
        await dedups[0].first("id");
        await dedups[0].forget("id");
        assert.equal(await dedups[0].first("id"), true);
        await (await dedups[0].claim("work")).commit("x");
        await dedups[0].forget("work");
        assert.equal((await dedups[0].claim("work")).status, "fresh");
        await dedups[1].forget("id");
        const start = performance.now();
        while (!(await dedups[0].first("id"))) await pause(5);
        const took = performance.now() - start;
        assert.ok(took <= 1_500, `after ${took} ms`);
      });

      test("a long result is fetched, not kept", async () => {
        const { dedups, counted } = fleet(1);
        const result = "x".repeat(10_000);
        await (await dedups[0].claim("id")).commit(result);
        const answer = await counted(() => dedups[0].claim("id"));
        assert.deepEqual(answer, [1, { status: "duplicate", result }]);
      });

      test("an alarm fires once over the fleet", async () => {
        const { nodes } = fleet(8);
        const options = { threshold: 40, window: "1h" };
        const detectors = nodes.map((store) => new BurstDetector({ ...options, store }));
        const observations = await Promise.all(
          Array.from({ length: 80 }, (_, at) => detectors[at % 8].observe("who")),
        );
        assert.deepEqual(
          observations.filter(({ fired }) => fired).map(({ count }) => count),
          [40],
        );
        assert.equal(Math.max(...observations.map(({ count }) => count)), 80);
      });
    });
  }
}

test("a message's limit and claim are one call to the shared store, and none where it is known to be over", async (t) => {
  let calls = 0;
  const evalScript = (script, _sha, keys, args) => {
    calls += 1;
    return redis.client.eval(script, keys.length, ...keys, ...args);
  };
  const [store] = nodesOf(1, new RedisStore({ evalScript }, { prefix: "admits" }), {});
  const http = createServer();
  const io = new Server(http);
  const rule = { limit: { limit: 2, window: "1h" }, dedup: {} };
  const gateway = createGateway({ store, events: { order: rule } }).register(io);
  t.after(() => Promise.all([io.close(), gateway.close()]));
  let handled = 0;
  io.on("connection", (socket) => gateway.on(socket, "order", () => ({ ok: true, nr: ++handled })));
  http.listen(0, "127.0.0.1");
  await once(http, "listening");
  const options = { transports: ["websocket"] };
  const client = connectTo(`http://127.0.0.1:${http.address().port}`, options);
  t.after(() => client.close());
  const sent = async (mid) => {
    const before = calls;
    const answer = await client.emitWithAck("order", { mid });
    return [answer.error?.code ?? answer.nr, calls - before];
  };
  // Limit and claim, then the commit.
  assert.deepEqual(await sent("a"), [1, 2]);
  assert.deepEqual(await sent("b"), [2, 2]);
  assert.deepEqual(await sent("c"), ["RATE_LIMITED", 1]);
  assert.deepEqual(await sent("a"), [1, 0], "over the limit and done, both known here");
  assert.deepEqual(await sent("d"), ["RATE_LIMITED", 1], "a look");
  assert.equal(handled, 2);
});

test("claims leave nothing in wasm memory, whoever answers them", async () => {
  const core = new URL("../node_modules/tidegate/dist/node/core.js", import.meta.url);
  const { DRIVER, stores } = await import(core);
  const [store] = nodesOf(1, sharedMap().store, {});
  await new Deduplicator({ ttl: "1h", store }).run("done", () => 7);
  const messages = store[DRIVER].messages("tg", 500);
  const claim = `K;token;1000;`;
  const bytes = () => stores().buffer.byteLength;
  const before = bytes();
  for (let call = 0; call < 5_000; call += 1) {
    assert.equal((await messages.admit("done", "token", 1_000)).status, "duplicate");
    assert.equal((await messages.call("taken", claim)).status, "fresh");
  }
  assert.equal(bytes(), before);
});
