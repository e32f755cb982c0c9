import type { Decision, Reason } from "./decision.js";
import type { ErrorCode } from "./errors.js";

/** More limit names than this share the label "other": a label for every user would never end. */
const MAX_NAMES = 100;

const REASONS = ["ok", "limited", "never", "blocked", "store-error", "timeout"] as const;

/** How often each reason was given. */
export type ReasonCounts = Record<Reason, number>;

const decisions = new Map<string, ReasonCounts>();
const storeErrors = new Map<ErrorCode, number>();
/** What happened to ids, identities and keys. */
export const counted = { duplicates: 0, bursts: 0, observations: 0, evicted: 0 };

/** The counts of a limit's name, which last as long as the process. */
function countsOf(name: string): ReasonCounts {
  const known = decisions.get(name);
  if (known !== undefined) return known;
  if (decisions.size >= MAX_NAMES && name !== "other") return countsOf("other");
  const counts = Object.fromEntries(REASONS.map((reason) => [reason, 0])) as ReasonCounts;
  decisions.set(name, counts);
  return counts;
}

/** Counts the decisions of one Limiter. */
export class DecisionCounter {
  /** The first limit's; the hot path counts here without looking anything up. */
  readonly first: ReasonCounts;
  readonly #byName: Map<string, ReasonCounts>;

  constructor(names: readonly string[]) {
    this.first = countsOf(names[0] as string);
    this.#byName = new Map(names.map((name) => [name, countsOf(name)]));
  }

  add({ limitName, reason }: Decision): void {
    const counts = this.#byName.size === 1 ? this.first : this.#byName.get(limitName);
    if (counts === undefined) return;
    if (reason === "ok") counts.ok += 1;
    else counts[reason] += 1;
  }
}

export function countStoreError(code: ErrorCode): void {
  storeErrors.set(code, (storeErrors.get(code) ?? 0) + 1);
}

type Sample = [labels: Record<string, string>, value: number];

/** One thing that is counted, under a name that every way of exporting it makes its own of. */
interface Family {
  readonly name: string;
  readonly help: string;
  readonly samples: Sample[];
}

/** Everything counted in this process, as it stands. */
export function families(): Family[] {
  const decided = [...decisions].flatMap(([limit, counts]) =>
    REASONS.map((reason): Sample => [{ limit, reason }, counts[reason]]),
  );
  const failed = [...storeErrors].map(([code, count]): Sample => [{ code }, count]);
  const one = (value: number): Sample[] => [[{}, value]];
  const family = (name: string, help: string, samples: Sample[]) => ({ name, help, samples });
  return [
    family("decisions", "Decisions, by the limit that decided and why.", decided),
    family("store_errors", "Calls that the store did not answer, by code.", failed),
    family("duplicates", "Messages that had been seen.", one(counted.duplicates)),
    family("observations", "Observations counted by burst detectors.", one(counted.observations)),
    family("bursts", "Burst alarms fired here.", one(counted.bursts)),
    family("evicted_keys", "Whole keys that made room in memory.", one(counted.evicted)),
  ];
}

/**
 * Everything counted in this process, as Prometheus text.
 *
 * @example
 * app.get("/metrics", (_, response) => response.type("text/plain").send(metrics()));
 */
export function metrics(): string {
  return families().map(text).join("");
}

function text({ name, help, samples }: Family): string {
  const full = `tidegate_${name}_total`;
  const lines = samples.map(([labels, value]) => `${full}${labelText(labels)} ${value}\n`);
  return `# HELP ${full} ${help}\n# TYPE ${full} counter\n${lines.join("")}`;
}

function labelText(labels: Record<string, string>): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

function escaped(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}
