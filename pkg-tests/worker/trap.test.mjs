// A trap in WebAssembly, wherever it happens: its request fails, and the next ones are served as if nothing had been.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { root } from "../../js/tools/shell.mjs";
import { serve, TOKEN } from "./served.mjs";

/** The Worker with a fault that a test arms: the next reading of the clock traps inside the module that asked. */
const source = `
  import { armTrap } from "./trap.mjs";
  import Worker, { TidegateShard } from ${JSON.stringify(join(root, "target/worker/index.js"))};

  export { TidegateShard };
  export default {
    async fetch(request, env, context) {
      const { pathname, searchParams } = new URL(request.url);
      if (pathname !== "/test/trap") return new Worker(context, env).fetch(request);
      return Response.json(armTrap(Number(searchParams.get("after"))));
    },
  };
`;

let worker;

before(async () => {
  worker = await serve({ source });
});

after(() => worker.stop());

const arm = async (after) => (await fetch(`${worker.url}/test/trap?after=${after}`)).json();
const consume = (key) =>
  fetch(`${worker.url}/v1/consume`, {
    method: "POST",
    headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
    body: JSON.stringify({ key, limit: { limit: 100, window: "1h" } }),
    signal: AbortSignal.timeout(10_000),
  });

test("a trap in an object's critical section undoes it, and the isolate goes on", async () => {
  assert.equal((await consume("k")).status, 200);
  for (let round = 0; round < 3; round += 1) {
    await arm(0);
    const response = await consume("k");
    assert.ok(response.status >= 500, `${response.status}`);
    const { trapped } = await arm(-1);
    assert.equal(trapped, round + 1, "it did trap");
    const answers = await Promise.all(Array.from({ length: 5 }, () => consume("k")));
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 200, 200, 200, 200],
    );
  }
  const { remaining } = await worker.ok("peek", { key: "k", limit: { limit: 100, window: "1h" } });
  assert.equal(remaining, 100 - 16);
});

test("requests that were under way when another trapped end, one way or the other", async () => {
  await arm(2);
  const answers = await Promise.allSettled(
    Array.from({ length: 20 }, (_, index) => consume(`under way ${index}`)),
  );
  assert.ok(
    answers.every(({ status }) => status === "fulfilled"),
    "none hangs",
  );
  await arm(-1);
  assert.equal((await consume("afterwards")).status, 200);
});
