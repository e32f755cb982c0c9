// What a failover under load may cost, counted. Replication does not wait: what a master admitted and its replica
// had not heard of when the master died is forgotten, and can be admitted once more. Nothing beyond that can.

import { Limiter } from "tidegate";
import { RedisStore } from "tidegate/redis";
import { until } from "../redis/servers.mjs";

export const LIMIT = 400;
export const limit = { algorithm: "fixed-window", limit: LIMIT, window: "1h" };

/**
 * Kills a master under load, after its replica has been out of reach for a while. Answers what the failover lost of
 * each key: how many units the clients were told they had, less those that the replica knows of.
 */
export async function killMaster(master, replica, load, keys, prefix) {
  replica.signal("SIGSTOP");
  await master.ask("CLIENT", "KILL", "TYPE", "replica");
  const admitted = () => keys.reduce((sum, key) => sum + load.admitted(key), 0);
  const reached = admitted();
  await until("the replica has missed something", () => admitted() > reached + 50);
  const failed = load.failures.length;
  await master.kill();
  replica.signal("SIGCONT");
  await until("the replica knows", async () => {
    return (await replica.ask("INFO", "replication")).includes("master_link_status:down");
  });
  // Its clients have heard all that it answered once they hear that it is gone.
  await until("the clients know", () => load.failures.length > failed);
  const used = await usedOn(replica, keys, prefix);
  return new Map(keys.map((key) => [key, load.admitted(key) - used.get(key)]));
}

/** How much of each key's budget a replica holds for used, by the script run read-only. */
async function usedOn(replica, keys, prefix) {
  const client = replica.client();
  await client.readonly().catch(() => {}); // needed on a cluster, unknown elsewhere
  const evalScript = (script, _sha, keys, args) =>
    client.call("EVAL_RO", script, keys.length, ...keys, ...args);
  const store = new RedisStore({ evalScript }, { prefix, maxBatch: 1 });
  const limiter = new Limiter({ limit, store, timeout: "5s" });
  const decisions = await Promise.all(keys.map((key) => limiter.peek(key)));
  client.disconnect();
  return new Map(keys.map((key, at) => [key, LIMIT - decisions[at].remaining]));
}
