import { MemoryStore } from "tidegate";

/** A memory store on a clock that only the test moves. */
export function frozenStore(options = {}) {
  const clock = { ms: 1_790_000_000_000 };
  return { clock, store: new MemoryStore({ ...options, now: () => clock.ms }) };
}

/** An asynchronous table with a conditional write, on the same kind of clock. */
export function frozenTable() {
  const clock = { ms: 1_790_000_000_000 };
  const rows = new Map();
  const adapter = {
    async get(key) {
      return rows.get(key) ?? null;
    },
    async compareAndSet(key, expected, next) {
      if ((rows.get(key) ?? null) !== expected) return false;
      rows.set(key, next);
      return true;
    },
    now: () => clock.ms,
  };
  return { clock, rows, adapter };
}
