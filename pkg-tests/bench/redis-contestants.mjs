// Who asks a server in the benches, and what the server tells of itself.

import { RateLimiterRedis } from "rate-limiter-flexible";
import { Limiter } from "../../js/dist/node/index.js";
import { RedisStore } from "../../js/dist/node/redis.js";

const WINDOW_S = 20 * 86_400;
/** More than any key is called, and so little that no key is whole again before the run ends. */
const PLENTY = 10_000;

const tidegate = (algorithm) => (client) => {
  const limit = { algorithm, limit: PLENTY, window: WINDOW_S * 1_000 };
  const limiter = new Limiter({ limit, store: new RedisStore(client), prefix: algorithm });
  return (key) => limiter.consume(key);
};

const flexible = (client) => {
  const limiter = new RateLimiterRedis({
    storeClient: client,
    points: PLENTY,
    duration: WINDOW_S,
  });
  return (key) => limiter.consume(key);
};

/** The last is whom the others are compared with. */
export const limiters = [
  ["tidegate, leaky bucket", tidegate("leaky-bucket")],
  ["tidegate, fixed window", tidegate("fixed-window")],
  ["rate-limiter-flexible", flexible],
];

const RETURN_ONE = "return 1";
const RETURN_ONE_SHA = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db";

/** What one awaits at least: commands without any limiter. */
export const commands = [
  [
    `EVALSHA of ${RETURN_ONE}`,
    (client) => {
      const loaded = client.script("LOAD", RETURN_ONE);
      return async (key) => {
        await loaded;
        return client.evalsha(RETURN_ONE_SHA, 1, key);
      };
    },
  ],
  ["INCR", (client) => (key) => client.incr(`count:${key}`)],
];

async function told(client, section, ...names) {
  const info = await client.info(section);
  return names.map((name) => Number(new RegExp(`${name}:([\\d.]+)`).exec(info)[1]));
}

/** Microseconds of processor time that the server has used. */
export async function processorMicros(client) {
  const seconds = await told(
    client,
    "cpu",
    "used_cpu_user_main_thread",
    "used_cpu_sys_main_thread",
  );
  return (seconds[0] + seconds[1]) * 1e6;
}

/** Bytes that the server has in use. */
export async function usedMemory(client) {
  return (await told(client, "memory", "used_memory"))[0];
}
