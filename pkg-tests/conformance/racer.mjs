// One of several processes that ask the same store at the same time. It answers what it was told to its parent.

import { BurstDetector, Deduplicator, Limiter, storeFrom } from "tidegate";
import { openPostgres, openSqlite } from "./databases.mjs";
import { postgresStore } from "./stores/postgres.mjs";
import { sqliteStore } from "./stores/sqlite.mjs";

const [, , kind, place] = process.argv;
const { store, close } = opened();

function opened() {
  if (kind === "sqlite") {
    const database = openSqlite(place);
    return { store: storeFrom(sqliteStore(database)), close: () => database.close() };
  }
  const pool = openPostgres(place, 2);
  return { store: storeFrom(postgresStore(pool)), close: () => pool.end() };
}

const window = "1h";
const shared = { store, prefix: "race", timeout: "30s" };
const together = (count, call) => Promise.all(Array.from({ length: count }, (_, at) => call(at)));

const races = {
  async consume({ limit, calls }) {
    const limiter = new Limiter({ ...shared, limit: { ...limit, window } });
    const decisions = await together(calls, () => limiter.consume("key"));
    return decisions.filter(({ allowed }) => allowed).length;
  },
  async first({ ids }) {
    const seen = new Deduplicator({ ...shared, ttl: window });
    const answers = await together(ids, (at) => seen.first(`id ${at}`));
    return answers.flatMap((first, at) => (first ? [at] : []));
  },
  async claim({ ids }) {
    const seen = new Deduplicator({ ...shared, ttl: window });
    const claims = await together(ids, (at) => seen.claim(`claimed ${at}`));
    const commits = claims.map((claim) => claim.status === "fresh" && claim.commit(process.pid));
    return (await Promise.all(commits)).flatMap((committed, at) => (committed ? [at] : []));
  },
  async observe({ identities, calls, threshold }) {
    const detector = new BurstDetector({ ...shared, threshold, window, trigger: "sliding" });
    const answers = await together(identities * calls, async (at) => {
      const identity = at % identities;
      const { fired } = await detector.observe(`identity ${identity}`);
      return fired ? [identity] : [];
    });
    return answers.flat();
  },
};

process.on("message", async ({ race, ...options }) => {
  if (race === "close") {
    await close();
    process.disconnect();
    return;
  }
  process.send({ answer: await races[race](options) });
});
process.send({ ready: true });
