// The longest pause that a single call causes, while keys are inserted, swept and evicted. What the engine
// spends on collecting its own garbage is marked apart: it depends on what else the process holds. A pause
// counts for no more than the processor time of the few calls around it: while another process runs, we rest.
//
//   node --no-incremental-marking --max-old-space-size=8192 pkg-tests/bench/pauses.mjs [handles] [strings]

import { PerformanceObserver, performance } from "node:perf_hooks";
import { RateLimiterMemory } from "rate-limiter-flexible";
import { Limiter, MemoryStore } from "../../js/dist/node/index.js";

const [handleCount = 10_000_000, stringCount = 1_000_000] = process.argv.slice(2).map(Number);
const LONG_MS = 1;
/** Calls between two looks at the processor time, and between two at the event loop, which tells of collections. */
const FEW = 100;
const MANY = 50_000;

let clock = 1_700_000_000_000;
const collections = [];
const observer = new PerformanceObserver((list) => {
  for (const { startTime, duration } of list.getEntries()) {
    collections.push([startTime, startTime + duration]);
  }
});
observer.observe({ entryTypes: ["gc"] });

/** Runs the call that often; the longest pause, without the collections in it, and what those took. */
async function pauses(who, count, call) {
  const long = [];
  collections.length = 0;
  for (let done = 0; done < count; ) {
    for (const end = Math.min(count, done + MANY); done < end; ) {
      const pause = longest(done, Math.min(end, done + FEW), call);
      if (pause.to - pause.from > LONG_MS) long.push(pause);
      done = Math.min(end, done + FEW);
    }
    await new Promise(setImmediate);
  }
  await new Promise((resolve) => setTimeout(resolve, 50));
  let [ours, garbage] = [0, 0];
  for (const { from, to, cpuMs } of long) {
    const collecting = collections.reduce(
      (sum, [start, end]) => sum + Math.max(0, Math.min(end, to) - Math.max(start, from)),
      0,
    );
    ours = Math.max(ours, Math.min(to - from, cpuMs) - collecting);
    garbage = Math.max(garbage, collecting);
  }
  return [
    { who, value: ours },
    { who: `${who}: garbage collected meanwhile`, value: garbage },
  ];
}

/** The longest of a few calls. */
function longest(first, end, call) {
  const before = process.cpuUsage();
  let [from, to] = [0, 0];
  let last = performance.now();
  for (let at = first; at < end; at += 1) {
    call(at);
    const now = performance.now();
    if (now - last > to - from) [from, to] = [last, now];
    last = now;
  }
  const { user, system } = process.cpuUsage(before);
  return { from, to, cpuMs: (user + system) / 1000 };
}

const named = (count) => count.toLocaleString("en").replaceAll(",", " ");

/** A limiter on a table with room for all, on a clock that is moved by hand. */
function limiterFor(maxKeys) {
  const store = new MemoryStore({ maxKeys, now: () => clock });
  return new Limiter({ limit: { limit: 10, window: "1m" }, store });
}

async function handles(count) {
  const limiter = limiterFor(count);
  const held = new Array(count);
  const made = (name) => (at) => {
    held[at] = limiter.handle(`${name}:${at}`);
    held[at].tryConsume();
  };
  const inserted = await pauses("handle and tryConsume", count, made("user"));
  const called = await pauses("tryConsume", count, (at) => held[at].tryConsume());
  clock += 3_600_000;
  const replaced = await pauses("handle and tryConsume", count, made("guest"));
  return [
    { what: `inserting ${named(count)} handles`, figures: inserted },
    { what: `calling ${named(count)} handles`, figures: called },
    { what: `as many other handles in their place: swept and evicted`, figures: replaced },
  ];
}

async function strings(count) {
  const limiter = limiterFor(count);
  const flexible = new RateLimiterMemory({ points: 10, duration: 60 });
  const consumed = (name) => (at) => limiter.consumeSync(`${name}:${at}`);
  const inserted = await pauses("consumeSync", count, consumed("user"));
  const peers = await pauses("rate-limiter-flexible", count, (at) => {
    flexible.consume(`user:${at}`);
  });
  clock += 3_600_000;
  const replaced = await pauses("consumeSync", count, consumed("guest"));
  return [
    { what: `inserting ${named(count)} strings`, figures: [...inserted, ...peers] },
    { what: "as many other strings in their place: swept and evicted", figures: replaced },
  ];
}

console.log(JSON.stringify([...(await strings(stringCount)), ...(await handles(handleCount))]));
process.exit();
