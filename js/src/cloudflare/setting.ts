export const DEFAULT_SHARDS = 64;
export const MOST_SHARDS = 1_024;

/** The deployment's number of shards, where its environment has one; or, as a text, what is wrong with it. */
export function shardsSetting(env: unknown): number | string | undefined {
  const value = (env as { TIDEGATE_SHARDS?: unknown } | null | undefined)?.TIDEGATE_SHARDS;
  const text = String(value ?? "").trim();
  if (text === "") return undefined;
  return shardsFrom(text) ?? `TIDEGATE_SHARDS must be a whole number from 1 to ${MOST_SHARDS}`;
}

/** A number of shards as text. */
export function shardsFrom(text: string): number | undefined {
  const shards = Number(text);
  return /^[1-9]\d{0,3}$/.test(text) && shards <= MOST_SHARDS ? shards : undefined;
}
