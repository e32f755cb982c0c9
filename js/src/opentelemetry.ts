/** Spans and metrics of OpenTelemetry, where its API is installed. */

import type { Decision } from "./decision.js";
import { onEvent, type TidegateEvent } from "./events.js";
import { families } from "./metrics.js";
import { type Asker, type Trace, traceBy } from "./tracing.js";

type Api = typeof import("@opentelemetry/api");
type Stop = () => void;

const NAME = "tidegate";
/** What calls to a store in the same network take, in seconds. */
const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1];

/**
 * Tells OpenTelemetry of every call to a store (a span and its duration; none for a MemoryStore, whose decisions take
 * less than a span), of every denial (an event of the span that is active) and of all that `metrics()` counts. Call it
 * once, after its SDK was started. Where `@opentelemetry/api` is not installed it does nothing.
 *
 * @returns the function that ends it.
 * @example
 * const stop = await instrument();
 */
export async function instrument(): Promise<Stop> {
  const api = await installed();
  if (api === undefined) return () => {};
  const stops = [follow(api), count(api), tell(api)];
  return () => {
    for (const stop of stops) stop();
  };
}

async function installed(): Promise<Api | undefined> {
  try {
    return await import("@opentelemetry/api");
  } catch (error) {
    if ((error as { code?: string }).code === "ERR_MODULE_NOT_FOUND") return undefined;
    throw error;
  }
}

/** A span for each call to a store, and how long it took. */
function follow({ trace, metrics, SpanKind, SpanStatusCode }: Api): Stop {
  const tracer = trace.getTracer(NAME);
  const durations = metrics.getMeter(NAME).createHistogram("tidegate.store.duration", {
    description: "How long calls to the store took.",
    unit: "s",
    advice: { explicitBucketBoundaries: SECONDS },
  });
  traceBy((asker: Asker): Trace => {
    const span = tracer.startSpan(`tidegate ${asker}`, { kind: SpanKind.CLIENT });
    const start = performance.now();
    const end = (outcome: Record<string, string>) => {
      span.setAttributes(outcome);
      span.end();
      durations.record((performance.now() - start) / 1000, { "tidegate.asker": asker, ...outcome });
    };
    return {
      answered: (told) => {
        const { reason, limitName } = (told ?? {}) as Partial<Decision>;
        // On the span only: there may be any number of names.
        if (limitName !== undefined) span.setAttribute("tidegate.limit", limitName);
        end(reason === undefined ? {} : { "tidegate.reason": reason });
      },
      failed: (error) => {
        span.setStatus({ code: SpanStatusCode.ERROR, message: error.message });
        span.recordException(error);
        end({ "error.type": error.code });
      },
    };
  });
  return () => traceBy(undefined);
}

/** The counters of metrics(), read when they are collected: the hot path counts once. */
function count({ metrics }: Api): Stop {
  const meter = metrics.getMeter(NAME);
  const stops = families().map(({ name, help }, at) => {
    const counter = meter.createObservableCounter(`tidegate.${name}`, { description: help });
    const read = (result: { observe(value: number, labels: Record<string, string>): void }) => {
      for (const [labels, value] of families()[at]?.samples ?? []) result.observe(value, labels);
    };
    counter.addCallback(read);
    return () => counter.removeCallback(read);
  });
  return () => {
    for (const stop of stops) stop();
  };
}

/** Denials and alarms, on the span of the request that met them. */
function tell({ trace }: Api): Stop {
  return onEvent((event) => {
    const named = eventOf(event);
    if (named !== undefined) trace.getActiveSpan()?.addEvent(...named);
  });
}

/** An event's name and attributes; none for what is no news. Keys, ids and identities stay out of it. */
function eventOf(event: TidegateEvent): [string, Record<string, string | boolean>?] | undefined {
  if (event.type === "burst") return ["tidegate.burst"];
  if (event.type === "duplicate") return ["tidegate.duplicate"];
  if (event.type !== "decision") return undefined;
  const { allowed, dryRun, reason, limitName } = event.decision;
  if (allowed && !dryRun) return undefined;
  const attributes = { "tidegate.reason": reason, "tidegate.limit": limitName };
  return ["tidegate.denied", { ...attributes, "tidegate.dry_run": dryRun }];
}
