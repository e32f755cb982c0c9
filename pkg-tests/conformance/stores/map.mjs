// The smallest store there is: a Map, behind the promises that a database would answer with. Time is an argument.

/** @returns {import("tidegate").CasAdapter & { size(): number }} */
export function mapStore(now) {
  const records = new Map();
  const live = (key) => {
    const record = records.get(key);
    return record !== undefined && record.expiresAt > now() ? record : undefined;
  };
  return {
    async get(key) {
      return live(key)?.value ?? null;
    },
    async compareAndSet(key, expected, next, ttlMs) {
      if ((live(key)?.value ?? null) !== expected) return false;
      records.set(key, { value: next, expiresAt: now() + ttlMs });
      return true;
    },
    now: async () => now(),
    size: () => [...records.keys()].filter(live).length,
  };
}
