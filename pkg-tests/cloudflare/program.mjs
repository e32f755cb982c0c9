// What the tests' Worker does, by the path that it is asked at; the namespace is named in the query.

import { Deduplicator, Limiter, TieredStore } from "tidegate";
import { DurableObjectStore } from "tidegate/cloudflare";
import { storeConformance } from "tidegate/conformance";
import { setClock } from "../worker/clock.mjs";
import { asked, setFault } from "./watched.mjs";

const timeout = "5s";
/** One for all requests, as Workers have it, and one for each, as they have it, too. */
const stores = new Map();

function storeOf(namespace, options) {
  const name = JSON.stringify(options);
  if (!stores.has(namespace)) stores.set(namespace, new Map());
  const own = stores.get(namespace);
  if (!own.has(name)) own.set(name, new DurableObjectStore(namespace, options));
  return own.get(name);
}

const tasks = {
  async suite(namespace) {
    const cases = [];
    storeConformance(
      (name, body) => cases.push({ name, body }),
      () => new DurableObjectStore(namespace),
    );
    const failed = [];
    for (const { name, body } of cases) {
      await body().catch((error) => failed.push(`${name}: ${error.message}`));
    }
    return { cases: cases.length, failed };
  },

  consume(namespace, { options, key, cost, ...rest }) {
    const store = storeOf(namespace, options);
    return new Limiter({ store, timeout, ...rest }).consume(key, { cost });
  },

  /** All in one tick. */
  keys(namespace, { options, keys, limit }) {
    const limiter = new Limiter({ store: new DurableObjectStore(namespace, options), limit });
    return Promise.all(keys.map((key) => limiter.consume(key)));
  },

  async tiered(namespace, { mode, limit, calls }) {
    const l2 = new DurableObjectStore(namespace);
    const store = new TieredStore({ l2, mode });
    const limiter = new Limiter({ store, limit, timeout });
    const decisions = [];
    for (let call = 0; call < calls; call += 1) decisions.push(await limiter.consume("tiered"));
    await store.close();
    const { remaining } = await new Limiter({ store: l2, limit, timeout }).peek("tiered");
    const count = (name) => decisions.filter((decision) => decision[name]).length;
    return { admitted: count("allowed"), local: count("local"), remaining };
  },

  async once(namespace, { id, text }) {
    const dedup = new Deduplicator({ store: storeOf(namespace), ttl: "1h", timeout });
    return dedup.run(id, () => text);
  },

  async send(namespace, { name, path, body }) {
    const stub = namespace.get(namespace.idFromName(name));
    const response = await stub.fetch(`https://shard${path}`, { method: "POST", body });
    return { status: response.status, text: await response.text() };
  },

  clock: (_, { at }) => setClock(at) ?? {},
  fault: (_, { fault }) => setFault(fault) ?? {},
  asked: () => asked.splice(0),
};

export async function answer(request, env) {
  const { pathname, searchParams } = new URL(request.url);
  try {
    const namespace = env[searchParams.get("namespace")];
    return Response.json(await tasks[pathname.slice(1)](namespace, await request.json()));
  } catch ({ code, message, cause }) {
    return Response.json({ code, message, cause: cause?.message });
  }
}
