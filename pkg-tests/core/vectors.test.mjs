// The shared decision vectors through the package: memory, handles, and a host store.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Limiter, storeFrom } from "tidegate";
import { frozenStore, frozenTable } from "./clock.mjs";

const { sequences } = JSON.parse(
  readFileSync(join(import.meta.dirname, "../vectors/decisions.json"), "utf8"),
);

function assertDecision(decision, expect, at) {
  const retryAfterMs = expect.retryAfterMs ?? Number.POSITIVE_INFINITY;
  assert.deepEqual(decision, { ...expect, retryAfterMs, local: false, dryRun: false }, at);
}

async function run(make, decide) {
  for (const [number, { limits, steps }] of sequences.entries()) {
    const { clock, limiter } = make(limits);
    for (const [index, step] of steps.entries()) {
      clock.ms = step.at;
      const at = `sequence ${number}, step ${index}`;
      assertDecision(await decide(limiter, step), step.expect, at);
    }
  }
}

function inMemory(limit) {
  const { clock, store } = frozenStore();
  return { clock, limiter: new Limiter({ limit, store }) };
}

test("memory decides as the vectors say", () =>
  run(inMemory, (limiter, { op, cost }) =>
    op === "peek" ? limiter.peek("key", { cost }) : limiter.consumeSync("key", { cost }),
  ));

test("handles decide as the vectors say", () => {
  const handles = new WeakMap();
  return run(inMemory, (limiter, { op, cost }) => {
    if (!handles.has(limiter)) handles.set(limiter, limiter.handle("key"));
    return op === "peek" ? limiter.peek("key", { cost }) : handles.get(limiter).consume(cost);
  });
});

test("tryConsume admits what the vectors admit", () => {
  const handles = new WeakMap();
  return run(inMemory, async (limiter, { op, cost, expect }) => {
    if (!handles.has(limiter)) handles.set(limiter, limiter.handle("key"));
    const decision = await limiter.peek("key", { cost });
    if (op === "consume") assert.equal(handles.get(limiter).tryConsume(cost), expect.allowed);
    // What peek does not tell is what the charge leaves.
    return op === "peek"
      ? decision
      : { ...expect, retryAfterMs: decision.retryAfterMs, local: false, dryRun: false };
  });
});

test("a host store decides as the vectors say", () =>
  run(
    (limit) => {
      const { clock, adapter } = frozenTable();
      return { clock, limiter: new Limiter({ limit, store: storeFrom(adapter) }) };
    },
    (limiter, { op, cost }) => limiter[op]("key", { cost }),
  ));
