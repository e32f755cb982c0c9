/** The demo's limits, said once: the gateway enforces this table and the page shows it. Times are milliseconds. */
export const rules = {
  chat: {
    limit: { algorithm: "leaky-bucket", limit: 5, window: 10_000 },
  },
  order: {
    limit: { algorithm: "fixed-window", limit: 5, window: 15_000 },
    dedup: { ttl: 600_000 },
  },
};
