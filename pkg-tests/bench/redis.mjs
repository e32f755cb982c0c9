// Decisions on a real server: the same server and the same client for all contestants, in turn, round after
// round. So many callers each ask again as soon as they are answered. Writes what was measured as JSON.

import { performance } from "node:perf_hooks";
import { Redis } from "ioredis";
import { Server } from "../redis/servers.mjs";
import { keysOf, median } from "./measure.mjs";
import { commands, limiters, processorMicros, usedMemory } from "./redis-contestants.mjs";

const ROUNDS = 7;
const WARM_UPS = 2;
const ROUND_MS = 250;
const KEYS = keysOf(10_000);
/** From key to key, so that no two callers meet soon. */
const STRIDE = 7_919;
/** Where the server's tables are as full as they get. */
const STORED_KEYS = 65_536;

/** One round: `inFlight` callers for a while. */
async function round(call, inFlight, client) {
  const waits = [];
  const own = process.cpuUsage();
  const server = await processorMicros(client);
  const start = performance.now();
  const caller = async (at) => {
    for (let now = start; now < start + ROUND_MS; at += STRIDE) {
      const asked = performance.now();
      await call(KEYS[at % KEYS.length]);
      now = performance.now();
      waits.push(now - asked);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, (_, at) => caller(at * 131)));
  const took = performance.now() - start;
  const { user, system } = process.cpuUsage(own);
  waits.sort((a, b) => a - b);
  return {
    perSecond: (waits.length / took) * 1_000,
    p50: waits[Math.floor(waits.length * 0.5)],
    p99: waits[Math.floor(waits.length * 0.99)],
    clientMicros: (user + system) / waits.length,
    serverMicros: ((await processorMicros(client)) - server) / waits.length,
  };
}

/** Medians of every figure, and of each round's ratio to the last contestant's. */
async function compare(contestants, inFlight, client) {
  const called = contestants.map(([name, make]) => ({ name, call: make(client), rounds: [] }));
  for (let turn = -WARM_UPS; turn < ROUNDS; turn += 1) {
    for (const { call, rounds } of called) {
      const figures = await round(call, inFlight, client);
      if (turn >= 0) rounds.push(figures);
    }
  }
  const last = called.at(-1);
  return called.map(({ name, rounds }) => {
    const figures = Object.keys(rounds[0]).map((figure) => [
      figure,
      {
        value: median(rounds.map((one) => one[figure])),
        ratio: median(rounds.map((one, turn) => one[figure] / last.rounds[turn][figure])),
      },
    ]);
    return { name, ...Object.fromEntries(figures) };
  });
}

/** What the server keeps for a key that was asked for once. */
async function bytes(call, client) {
  await client.flushall();
  const before = await usedMemory(client);
  for (let at = 0; at < STORED_KEYS; at += 64) {
    await Promise.all(Array.from({ length: 64 }, (_, one) => call(`user:${at + one}`)));
  }
  const used = ((await usedMemory(client)) - before) / STORED_KEYS;
  return { used, told: await client.memory("USAGE", await client.randomkey()) };
}

async function memory(client) {
  const rows = [];
  for (const [name, make] of limiters) rows.push({ name, ...(await bytes(make(client), client)) });
  return rows;
}

async function measured(what, client) {
  if (what === "memory") return memory(client);
  const inFlight = Number(what);
  return compare(inFlight === 1 ? [...limiters, ...commands] : limiters, inFlight, client);
}

const server = await Server.start();
const client = new Redis(server.port);
try {
  console.log(JSON.stringify(await measured(process.argv[2], client)));
} finally {
  client.disconnect();
  await server.stop();
}
