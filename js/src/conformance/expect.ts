import { TidegateError } from "../errors.js";

/** An answer that is not the one a store owes. */
export class Unexpected extends Error {
  constructor(what: string, expected: string, actual: unknown) {
    super(`${what}: expected ${expected}, but got ${shown(actual)}`);
    this.name = "Unexpected";
  }
}

/** The same value, or the same plain data. */
export function same(actual: unknown, expected: unknown, what: string): void {
  if (!alike(actual, expected)) throw new Unexpected(what, shown(expected), actual);
}

/** A number from `least` to `most`, both included. */
export function within(actual: number, least: number, most: number, what: string): void {
  if (!(actual >= least && actual <= most)) {
    throw new Unexpected(what, `a number from ${least} to ${most}`, actual);
  }
}

/** The fields that are named; others may be anything. */
export function fields(actual: object, expected: Record<string, unknown>, what: string): void {
  for (const [name, value] of Object.entries(expected)) {
    same((actual as Record<string, unknown>)[name], value, `${what}: ${name}`);
  }
}

/** A rejection, or a throw, with an error of this package. */
export async function refused(call: () => unknown, code: string, what: string): Promise<void> {
  const expected = `the error "${code}"`;
  let answer: unknown;
  try {
    answer = await call();
  } catch (error) {
    if (error instanceof TidegateError && error.code === code) return;
    throw new Unexpected(what, expected, error);
  }
  throw new Unexpected(what, expected, answer);
}

/** How many values there are of each, such as { true: 1, false: 49 }. */
export function tally(values: readonly unknown[]): Record<string, number> {
  const counts = new Map<string, number>();
  for (const value of values) counts.set(String(value), (counts.get(String(value)) ?? 0) + 1);
  return Object.fromEntries([...counts].sort());
}

function alike(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const names = Object.keys(a);
  return (
    names.length === Object.keys(b).length &&
    names.every((name) => Object.hasOwn(b, name) && alike(property(a, name), property(b, name)))
  );
}

function property(object: object, name: string): unknown {
  return (object as Record<string, unknown>)[name];
}

/** A value in an error's text: as JSON, cut where it gets long. */
function shown(value: unknown): string {
  if (value instanceof TidegateError) return `the error "${value.code}" (${value.message})`;
  if (value instanceof Error) return `${value.name}: ${value.message}`;
  const text = typeof value === "object" ? JSON.stringify(value) : undefined;
  const whole = text ?? (typeof value === "string" ? JSON.stringify(value) : String(value));
  return whole.length > 300 ? `${whole.slice(0, 300)}… (${whole.length} characters)` : whole;
}
