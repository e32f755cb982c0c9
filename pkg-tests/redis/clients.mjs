// The clients that people have, each as it is connected to what the tests started.

import { GlideClient, GlideClusterClient, Logger } from "@valkey/valkey-glide";
import { Cluster, Redis } from "ioredis";
import { Redis as Valkey, Cluster as ValkeyCluster } from "iovalkey";
import { createClient, createCluster } from "redis";

Logger.setLoggerConfig("off");

const host = "127.0.0.1";
const url = (port) => `redis://${host}:${port}`;
/** Clients tell of a lost connection, which the tests bring about. */
export const quiet = (client) => client.on("error", () => {});
const soon = () => 20;

/** Each on a single server. */
export const single = {
  ioredis: async (port) => quiet(new Redis(port, { retryStrategy: soon })),
  iovalkey: async (port) => quiet(new Valkey(port, { retryStrategy: soon })),
  "node-redis": (port) =>
    quiet(createClient({ url: url(port), socket: { reconnectStrategy: soon } })).connect(),
  GLIDE: (port) => GlideClient.createClient({ addresses: [{ host, port }] }),
};

/** Each on a cluster of which it is told some nodes. */
export const cluster = {
  ioredis: async (ports) => quiet(new Cluster(ports.map((port) => ({ host, port })))),
  iovalkey: async (ports) => quiet(new ValkeyCluster(ports.map((port) => ({ host, port })))),
  "node-redis": (ports) =>
    quiet(createCluster({ rootNodes: ports.map((port) => ({ url: url(port) })) })).connect(),
  GLIDE: (ports) =>
    GlideClusterClient.createClient({ addresses: ports.map((port) => ({ host, port })) }),
};

export function disconnect(client) {
  const name = ["destroy", "disconnect", "close"].find((name) => client[name] !== undefined);
  client[name]();
}
