// Eight processes, one server, a load that is not spread evenly: what was admitted above the limit, against the
// bound. TIDEGATE_SOAK makes it long.

import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { Redis } from "ioredis";
import { Limiter, TieredStore } from "tidegate";
import { RedisStore } from "tidegate/redis";
import { Server } from "../redis/servers.mjs";

const NODES = 8;
const LIMIT = 200;
const KEYS = 12;
const LOAD_MS = process.env.TIDEGATE_SOAK === undefined ? 1_200 : 60_000;
/** Longer than what was heard before it is believed. */
const OUTAGE_MS = 1_500;
const options = { timeout: 6 * LOAD_MS + 60_000 };

let server;
let client;
let processes;
let prefixes = 0;

before(async () => {
  server = await Server.start();
  client = new Redis(server.port);
  processes = await Promise.all(Array.from({ length: NODES }, started));
  // What runs for the first time is slow.
  await loaded("lease", "fixed-window", LOAD_MS / 2);
});
after(async () => {
  for (const process of processes) process.kill();
  client.disconnect();
  await server.stop();
});

async function started() {
  const process = fork(join(import.meta.dirname, "node.mjs"));
  await once(process, "message");
  return process;
}

async function told(process, name, task) {
  const answer = once(process, "message");
  process.send({ name, port: server.port, task });
  return (await answer)[0];
}

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

/** What the whole fleet admitted of each key, and what the server knows of. */
async function loaded(mode, algorithm, loadMs = LOAD_MS, whileLoaded = async () => {}) {
  const limit = { limit: LIMIT, window: "1h", algorithm };
  const tier = { mode, syncEvery: 50 };
  const prefix = `fleet${prefixes++}`;
  const task = { limit, tier, prefix, keys: KEYS, until: Date.now() + loadMs };
  const answers = Promise.all(processes.map((process) => told(process, "load", task)));
  const [nodes] = await Promise.all([answers, whileLoaded()]);
  const l2 = new RedisStore(client, { prefix });
  const direct = new Limiter({ limit, store: l2, timeout: "10s" });
  const admitted = new Map();
  for (const node of nodes) {
    for (const [key, count] of Object.entries(node.admitted)) {
      admitted.set(key, (admitted.get(key) ?? 0) + count);
    }
  }
  const keys = [];
  for (const [key, count] of admitted) {
    keys.push({ key, admitted: count, used: LIMIT - (await direct.peek(key)).remaining });
  }
  const bound = new TieredStore({ l2, mode }).overAdmissionBound(limit, NODES);
  const calls = sum(nodes.map((node) => node.calls));
  const local = sum(nodes.map((node) => node.local)) / calls;
  const failed = sum(
    nodes.map(({ reasons }) => (reasons.timeout ?? 0) + (reasons["store-error"] ?? 0)),
  );
  return { keys, bound, calls, local, failed };
}

function report(t, { keys, bound, calls, local, failed }) {
  const excess = Math.max(...keys.map(({ admitted }) => admitted - LIMIT));
  const share = (100 * local).toFixed(1);
  t.diagnostic(
    `${t.name}: ${calls} calls, ${share} % decided here, ${failed} failed; at most ${Math.max(0, excess)} above the limit, bound ${bound}`,
  );
}

function assertBound({ keys, bound }, leaked) {
  for (const { key, admitted } of keys) {
    assert.ok(admitted <= LIMIT + bound + leaked, `${admitted} of ${key}, bound ${bound}`);
  }
}

for (const mode of ["deny-cache", "lease", "eager"]) {
  for (const algorithm of ["leaky-bucket", "fixed-window", "sliding-window"]) {
    test(`${mode}, ${algorithm}`, options, async (t) => {
      const start = performance.now();
      const told = await loaded(mode, algorithm);
      report(t, told);
      const tookMs = performance.now() - start;
      // So does what a sliding window has left behind, when an hour ends meanwhile.
      const leaked = algorithm === "fixed-window" ? 0 : (tookMs * LIMIT) / 3_600_000;
      assertBound(told, Math.ceil(leaked));
      // On a machine that has much else to do it may take longer than a window to use a budget up.
      const isEnough = told.keys.some(({ admitted }) => admitted >= LIMIT);
      assert.ok(isEnough || told.calls - told.failed < 20_000, "no budget was used up");
      if (told.failed > 0) return;
      // All that was admitted was charged, and what was not spent went back, but for what had leaked of each
      // node's two portions.
      for (const { key, admitted, used } of told.keys) {
        const [least, most] = [Math.min(admitted, LIMIT) - leaked, admitted + 2 * NODES * leaked];
        const isRight = used >= Math.floor(least) && used <= Math.ceil(most);
        assert.ok(isRight, `${used} charged for ${admitted} of ${key}`);
      }
    });
  }

  test(`${mode}, fixed-window, the server stopped for a while`, options, async (t) => {
    const told = await loaded(mode, "fixed-window", LOAD_MS + OUTAGE_MS, async () => {
      await pause(LOAD_MS / 3);
      server.signal("SIGSTOP");
      await pause(OUTAGE_MS);
      server.signal("SIGCONT");
    });
    report(t, told);
    assertBound(told, 0);
    assert.ok(told.failed > 0, "nobody noticed");
    for (const { key, admitted, used } of told.keys) {
      assert.ok(used >= Math.min(admitted, LIMIT), `${used} charged for ${admitted} of ${key}`);
    }
  });
}

test(
  "a process that is killed strands at most its share, until the lease ends",
  options,
  async () => {
    const window = 4_000;
    const limit = { limit: LIMIT, window, algorithm: "fixed-window" };
    const prefix = "killed";
    const task = { limit, tier: { mode: "lease" }, prefix };
    const direct = new Limiter({ limit, store: new RedisStore(client, { prefix }) });
    const doomed = await started();
    const start = performance.now();
    const spent = await told(doomed, "hold", task);
    doomed.kill("SIGKILL");
    await once(doomed, "exit");
    const stranded = LIMIT - (await direct.peek("key")).remaining - spent;
    assert.ok(stranded > 0 && stranded <= LIMIT / 8, `${stranded} stranded`);
    // Others may spend all the rest, and nothing more.
    const survivor = await started();
    const spentToo = await told(survivor, "hold", task);
    const { remaining } = await direct.peek("key");
    assert.ok(remaining <= LIMIT - spent - stranded - spentToo);
    survivor.kill("SIGKILL");
    while ((await direct.peek("key")).remaining < LIMIT) await pause(20);
    const took = performance.now() - start;
    assert.ok(took < window + 1_500, `whole after ${took} ms`);
  },
);
