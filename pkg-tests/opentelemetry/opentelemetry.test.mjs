// The real API with its real SDK; and without either.

import assert from "node:assert/strict";
import { cpSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { context, metrics, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { BurstDetector, Deduplicator, Limiter, storeFrom } from "tidegate";
import { expressLimit } from "tidegate/http";
import { instrument } from "tidegate/opentelemetry";
import { frozenTable } from "../core/clock.mjs";
import { listening } from "../http/hosts.mjs";
import { directory, node, unpacked } from "../package/project.mjs";

const spans = new InMemorySpanExporter();
const measured = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
const reader = new PeriodicExportingMetricReader({
  exporter: measured,
  exportIntervalMillis: 60_000,
});
const tracers = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] });
const limit = { name: "api", limit: 1, window: "1h" };
let stop;

before(async () => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  trace.setGlobalTracerProvider(tracers);
  metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }));
  stop = await instrument();
});

after(() => reader.shutdown());

const table = () => storeFrom(frozenTable().adapter);

/** The spans that a piece of work made. */
async function spansOf(work) {
  spans.reset();
  await work();
  return spans.getFinishedSpans();
}

/** A metric's data points, by their attributes. */
async function points(name) {
  measured.reset();
  await reader.forceFlush();
  const all = measured.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics);
  const metric = all
    .flatMap(({ metrics }) => metrics)
    .find(({ descriptor }) => descriptor.name === name);
  return new Map(
    metric.dataPoints.map(({ attributes, value }) => [Object.values(attributes).join(" "), value]),
  );
}

test("each call to a store is a span, below the one that is active", async () => {
  const tracer = trace.getTracer("test");
  const limiter = new Limiter({ limit, store: table() });
  const [first, second, request] = await spansOf(() =>
    tracer.startActiveSpan("request", async (span) => {
      await limiter.consume("key");
      await limiter.consume("key");
      span.end();
    }),
  );
  assert.equal(request.name, "request");
  for (const [span, reason] of [
    [first, "ok"],
    [second, "limited"],
  ]) {
    assert.equal(span.name, "tidegate limiter");
    assert.equal(span.kind, SpanKind.CLIENT);
    assert.equal(span.parentSpanContext.spanId, request.spanContext().spanId);
    assert.deepEqual(span.attributes, { "tidegate.limit": "api", "tidegate.reason": reason });
  }
  const denied = {
    "tidegate.reason": "limited",
    "tidegate.limit": "api",
    "tidegate.dry_run": false,
  };
  assert.deepEqual(
    request.events.map(({ name, attributes }) => ({ name, attributes })),
    [{ name: "tidegate.denied", attributes: denied }],
  );
});

test("the others' calls are told apart, and say nothing of ids and identities", async () => {
  const all = await spansOf(async () => {
    await new Deduplicator({ ttl: "1h", store: table() }).first("secret");
    await new BurstDetector({ threshold: 2, window: "1h", store: table() }).observe("secret");
  });
  assert.deepEqual(
    all.map(({ name, attributes }) => [name, attributes]),
    [
      ["tidegate deduplicator", {}],
      ["tidegate burst detector", {}],
    ],
  );
});

test("a store that fails is an error of the span", async () => {
  const store = storeFrom({ get: () => Promise.reject(new Error("down")), compareAndSet() {} });
  const limiter = new Limiter({ limit, store, onStoreError: "allow" });
  const [span] = await spansOf(() => limiter.consume("key"));
  assert.equal(span.status.code, SpanStatusCode.ERROR);
  assert.deepEqual(span.attributes, { "error.type": "store" });
  assert.match(span.events[0].attributes["exception.message"], /down/);
});

test("a store in memory makes no spans", async () => {
  const limiter = new Limiter({ limit });
  const all = await spansOf(async () => {
    await limiter.consume("key");
    limiter.consumeSync("key");
  });
  assert.deepEqual(all, []);
});

test("counters are those of metrics(), and calls to the store have a duration", async () => {
  const counted = async () => (await points("tidegate.decisions")).get("counted limited") ?? 0;
  const calls = async () => (await points("tidegate.store.duration")).get("limiter limited").count;
  const limiter = new Limiter({ limit: { ...limit, name: "counted" }, store: table() });
  await limiter.consume("key");
  await limiter.consume("key");
  const before = [await counted(), await calls()];
  await limiter.consume("key");
  assert.deepEqual([await counted(), await calls()], [before[0] + 1, before[1] + 1]);
});

test("a denial is an event of the server's own span", async (t) => {
  const tracer = trace.getTracer("server");
  const limited = expressLimit({ limit });
  const server = createServer((request, response) =>
    tracer.startActiveSpan("GET", (span) => {
      response.on("finish", () => span.end());
      limited(request, response, () => response.end("hello"));
    }),
  );
  const url = await listening(t, server);
  const [first, second] = await spansOf(async () => {
    await fetch(url);
    await fetch(url);
  });
  assert.deepEqual([first.events.length, second.events.length], [0, 1]);
});

test("without the API nothing happens, and everything works", (t) => {
  const path = directory(t, {
    "main.mjs": `
      import { Limiter } from "tidegate";
      import { instrument } from "tidegate/opentelemetry";
      const stop = await instrument();
      const limiter = new Limiter({ limit: { limit: 1, window: "1m" } });
      console.log((await limiter.consume("key")).allowed, typeof stop());
    `,
  });
  cpSync(unpacked, join(path, "node_modules/tidegate"), { recursive: true });
  assert.equal(node("main.mjs", path), "true undefined");
});

test("what instrument() answers ends it", async () => {
  stop();
  const all = await spansOf(() => new Limiter({ limit, store: table() }).consume("key"));
  assert.deepEqual(all, []);
});
