// RedisRestStore in a Worker: the same suite, and what only Workers do to a store.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { startWorker } from "../workerd.mjs";
import { gone, respond, TOKEN } from "./proxy.mjs";
import { serve } from "./served.mjs";

let served;

before(async () => {
  served = await serve();
});

after(() => served.stop());

const env = () => ({ REST_URL: served.proxy.url, REST_TOKEN: TOKEN });

const suite = `
  import { runSuite } from "./suite.mjs";

  export default {
    async fetch(request, env) {
      const prefix = new URL(request.url).pathname.slice(1);
      return Response.json(await runSuite({ url: env.REST_URL, token: env.REST_TOKEN, prefix }));
    },
  };
`;

test("the suite on workerd", async () => {
  const worker = await startWorker(suite, import.meta.dirname, { env: env() });
  try {
    const response = await fetch(`${worker.url}/workerd`);
    const { cases, failed } = await response.json();
    assert.deepEqual(failed, []);
    assert.ok(cases > 70, `${cases} cases`);
  } finally {
    await worker.stop();
  }
});

/** One store for all requests. What a request asks for is in its query. */
const shared = `
  import { Limiter } from "tidegate";
  import { RedisRestStore } from "tidegate/redis-rest";

  let limiter;
  const limiterOf = (env) => {
    const store = new RedisRestStore({ url: env.REST_URL, token: env.REST_TOKEN, prefix: "shared" });
    return new Limiter({ limit: { limit: 50, window: "1h" }, store, timeout: "2s" });
  };

  export default {
    async fetch(request, env) {
      limiter ??= limiterOf(env);
      const { searchParams } = new URL(request.url);
      const decision = limiter.consume(searchParams.get("key"));
      if (searchParams.has("float")) {
        decision.catch(() => {});
        return new Response("did not wait");
      }
      return decision.then(Response.json, ({ code }) => Response.json({ code }));
    },
  };
`;

describe("one store that all requests share", () => {
  let worker;

  before(async () => {
    // With Node's API there is setImmediate, too.
    const options = { env: env(), flags: ["nodejs_compat"] };
    worker = await startWorker(shared, import.meta.dirname, options);
  });

  after(() => worker.stop());

  const ask = async (query, request) => {
    const response = await fetch(`${worker.url}/?${query}`, request);
    return response.json();
  };

  test("200 requests at once for one key: exactly the limit is admitted", async () => {
    const decisions = await Promise.all(Array.from({ length: 200 }, () => ask("key=hot")));
    assert.equal(decisions.filter(({ allowed }) => allowed).length, 50);
  });

  test("requests that go away, or do not wait, hold up nobody else's", async () => {
    served.proxy.fault = async ({ body }, answer, response) => {
      if (!body.includes("held")) respond(response, ...(await answer()));
    };
    try {
      for (let round = 0; round < 5; round += 1) {
        const signal = AbortSignal.timeout(100);
        const left = assert.rejects(ask("key=held", { signal }));
        await Promise.all(
          Array.from({ length: 5 }, () => fetch(`${worker.url}/?key=floating&float`)),
        );
        assert.equal((await ask(`key=after`)).remaining, 49 - round);
        await left;
      }
    } finally {
      served.proxy.fault = undefined;
    }
  });

  test("a server that hangs is a timeout, and its requests are aborted", async () => {
    let aborted;
    served.proxy.fault = (_request, _serve, response) => {
      aborted = gone(response);
    };
    try {
      assert.deepEqual(await ask("key=hung"), { code: "timeout" });
      assert.ok(aborted !== undefined);
      await aborted;
    } finally {
      served.proxy.fault = undefined;
    }
  });
});

// Before the end of 2024 Workers refused the option that keeps answers from being cached.
test("a Worker with an old compatibility date", async () => {
  const options = { env: env(), date: "2024-11-01" };
  const worker = await startWorker(shared, import.meta.dirname, options);
  try {
    const response = await fetch(`${worker.url}/?key=old`);
    assert.equal((await response.json()).remaining, 49);
  } finally {
    await worker.stop();
  }
});
