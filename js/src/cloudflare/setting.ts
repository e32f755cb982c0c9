import { show } from "../errors.js";

export const DEFAULT_SHARDS = 64;
export const MOST_SHARDS = 1_024;

/** The deployment's number of shards, where its environment has one. */
export function shardsSetting(env: unknown): number | undefined {
  const value = (env as { TIDEGATE_SHARDS?: unknown } | null | undefined)?.TIDEGATE_SHARDS;
  const text = String(value ?? "").trim();
  if (text === "") return undefined;
  const shards = shardsFrom(text);
  if (shards !== undefined) return shards;
  const expected = `a whole number from 1 to ${MOST_SHARDS}`;
  throw new Error(`TIDEGATE_SHARDS must be ${expected}, but is ${show(value)}`);
}

/** A number of shards as text. */
export function shardsFrom(text: string): number | undefined {
  const shards = Number(text);
  return /^[1-9]\d{0,3}$/.test(text) && shards <= MOST_SHARDS ? shards : undefined;
}
