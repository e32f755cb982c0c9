// EdgeStore: the Rust Worker as the store of processes elsewhere, over HTTP.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, before, describe, test } from "node:test";
import { BurstDetector, Deduplicator, Limiter, TieredStore } from "tidegate";
import { EdgeStore } from "tidegate/cloudflare";
import { storeConformance } from "tidegate/conformance";
import { prints, snippetsOf } from "../readme/snippets.mjs";
import { BOUND_TOKEN, serve, TOKEN } from "../worker/served.mjs";
import { admitted, many } from "./served.mjs";

const rejections = [];
process.on("unhandledRejection", (reason) => rejections.push(reason));

const limit = { limit: 50, window: "1h" };
const timeout = "10s";
let worker;

before(async () => {
  worker = await serve();
});

after(async () => {
  await worker.stop();
  assert.deepEqual(rejections, []);
});

const made = (options) => new EdgeStore({ url: worker.url, token: TOKEN, ...options });

/** A store, and the bodies of the requests that it sends. */
function counted(options) {
  const bodies = [];
  const send = (url, request) => {
    bodies.push(request.body);
    return fetch(url, request);
  };
  return { store: made({ fetch: send, ...options }), bodies };
}

describe("conformance", () => {
  storeConformance(test, () => made());
});

test("the README's snippet", async () => {
  const snippet = snippetsOf("README.md").find(({ name }) => name === "elsewhere");
  await prints(snippet, { TIDEGATE_URL: worker.url, TIDEGATE_TOKEN: TOKEN });
});

test("200 consumers over many stores: exactly the limit is admitted", async () => {
  const limiters = Array.from({ length: 20 }, () => new Limiter({ limit, store: made(), timeout }));
  const decisions = await many(200, (_, index) => limiters[index % 20].consume("hot"));
  assert.equal(admitted(decisions), 50);
});

test("a tick is one request, whatever shards its keys are of, in order per key", async () => {
  const { store, bodies } = counted();
  const limiter = new Limiter({ limit: { limit: 2, window: "1h" }, store, timeout });
  const decisions = await many(240, (_, index) => limiter.consume(`tick ${index % 60}`));
  assert.ok(decisions.every(({ allowed }, index) => allowed === index < 120));
  assert.equal(bodies.length, 1);
  assert.equal(bodies[0].split("\n")[0], "1;");
  await many(300, (_, index) => limiter.consume(`more ${index}`));
  assert.equal(bodies.length, 3, "256 operations at most");
});

test("the longest results there are, together more than one request carries", async () => {
  const { store, bodies } = counted();
  const dedup = new Deduplicator({ store, ttl: "1h", timeout });
  // 64 KiB of JSON, with quotes, each of whose characters is six when it is sent.
  const result = "\x7f".repeat(64 * 1024 - 2);
  const ids = Array.from({ length: 4 }, (_, index) => `long ${index}`);
  await Promise.all(ids.map((id) => dedup.run(id, () => result)));
  assert.equal(bodies.filter((body) => body.length > 256 * 1024).length, 4);
  const again = await Promise.all(ids.map((id) => dedup.run(id, () => "another")));
  assert.ok(again.every((text) => text === result));
  await assert.rejects(
    dedup.run("longer", () => `${result}x`),
    { code: "bad_argument" },
  );
});

test("TieredStore over it", async () => {
  const l2 = made();
  const window = { algorithm: "fixed-window", limit: 400, window: "1h" };
  const tiered = new TieredStore({ l2, mode: "lease" });
  const limiter = new Limiter({ limit: window, store: tiered, timeout });
  let local = 0;
  for (let call = 0; call < 300; call += 1) {
    if ((await limiter.consume("tiered")).local) local += 1;
  }
  assert.ok(local > 250, `${local} local`);
  await tiered.close();
  const { remaining } = await new Limiter({ limit: window, store: l2, timeout }).peek("tiered");
  assert.equal(remaining, 100);
});

test("a token that is bound to a prefix has that prefix's keys, and what is below it", async () => {
  const store = made({ token: BOUND_TOKEN });
  for (const prefix of ["app", "app/chat"]) {
    const options = { store, prefix, timeout };
    assert.ok((await new Limiter({ limit, ...options }).consume("k")).allowed);
    assert.equal(await new Deduplicator({ ttl: "1h", ...options }).first("id"), true);
    const bursts = new BurstDetector({ threshold: 1, window: "1h", ...options });
    assert.equal((await bursts.observe("i")).fired, true);
  }
  for (const prefix of [undefined, "apple", "app:chat", "ap"]) {
    const others = new Limiter({ limit, store, timeout, ...(prefix && { prefix }) });
    await assert.rejects(others.consume("k"), {
      code: "store",
      message: /refused \(403\): forbidden: this token sees only keys under the prefix "app"/,
    });
  }
});

test("what the Worker refuses is a store error in its words, and nothing is sent twice", async () => {
  const { store, bodies } = counted({ token: "0123456789abcdef-wrong" });
  await assert.rejects(new Limiter({ limit, store }).consume("k"), {
    code: "store",
    message: /refused \(401\): unauthorized/,
  });
  assert.equal(bodies.length, 1);
  const elsewhere = made({ url: `${worker.url}/elsewhere` });
  await assert.rejects(new Limiter({ limit, store: elsewhere }).consume("k"), {
    code: "store",
    message: /refused \(404\): not_found/,
  });
});

describe("a server that is none", () => {
  let server;
  let url;
  let respond;
  let requests = 0;

  before(async () => {
    server = createServer((request, response) => {
      requests += 1;
      request.resume();
      respond(response, request);
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    url = `http://127.0.0.1:${server.address().port}`;
  });

  after(() => {
    server.closeAllConnections();
    server.close();
  });

  const consume = (options) =>
    new Limiter({ limit, store: made({ url }), ...options }).consume("key");

  for (const [name, status, body, message] of [
    ["a page", 200, "<!doctype html>", /not one of ours/],
    ["a reply to more", 200, "1,1;1,1", /not one of ours/],
    ["nothing", 200, "", /not one of ours/],
    ["an error of the platform", 503, "error code: 1102", /not the Worker \(status 503\)/],
    ["a redirect", 302, "", /status 302/],
  ]) {
    test(`${name} is a store error`, async () => {
      respond = (response) => response.writeHead(status, { location: "/elsewhere" }).end(body);
      requests = 0;
      await assert.rejects(consume(), (error) => {
        assert.equal(error.code, "store");
        assert.match(error.message, message);
        return !error.message.includes(TOKEN);
      });
      assert.equal(requests, 1);
    });
  }

  test("one that hangs is a timeout, and the request is aborted", async () => {
    let closed;
    respond = (response) => {
      closed = once(response, "close");
    };
    await assert.rejects(consume({ timeout: 200 }), { code: "timeout" });
    await closed;
    assert.equal((await consume({ timeout: 100, onStoreError: "deny" })).reason, "timeout");
  });

  test("one that breaks off is a store error with its cause", async () => {
    respond = (response) => response.destroy();
    await assert.rejects(consume(), (error) => error.code === "store" && error.cause !== undefined);
    const { local, allowed } = await consume({ onStoreError: "local" });
    assert.deepEqual([local, allowed], [true, true]);
  });
});

test("options that make no sense are refused at once, and the token is not shown", () => {
  const refuses = (option, options) =>
    assert.throws(
      () => new EdgeStore({ url: "https://edge.example", token: TOKEN, ...options }),
      (error) => {
        assert.equal(error.code, "bad_policy");
        assert.match(error.message, new RegExp(option));
        return !error.message.includes(TOKEN);
      },
    );
  for (const url of ["http://edge.example", "edge.example", "", undefined, `https://${TOKEN}@x`]) {
    refuses('option "url"', { url });
  }
  for (const token of ["", undefined, 7, "a b", "https://edge.example"]) {
    refuses('option "token"', { token });
  }
  refuses('option "fetch"', { fetch: "fetch" });
  refuses('unknown option "prefix"', { prefix: "app" });
  assert.equal(
    new EdgeStore({ url: "http://localhost:1", token: TOKEN }).capabilities.clock,
    "store",
  );
});

describe("/v1/steps itself", () => {
  const post = async (body, { token = TOKEN, kind = "text/plain" } = {}) => {
    const response = await fetch(`${worker.url}/v1/steps`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": kind },
      body,
    });
    return { status: response.status, text: await response.text() };
  };

  test("a batch in, packed replies out, in the order of the lines", async () => {
    const { status, text } = await post(
      "1;\nx:m:1\tF;60000\nx:l:2\tC;1;default=b,1,1000,10\nx:m:1\tC;1;default=b,1,1000,10\nx:m:1\tL;",
    );
    assert.deepEqual([status, text], [200, "1;9,1000;!;7\ncorrupt\n"]);
  });

  test("what is none is refused, whole, and names what is wrong", async () => {
    const good = "x:m:refused\tF;60000";
    const lines = (count) => ["1;", ...Array.from({ length: count }, () => "x:m:2\tL;")].join("\n");
    for (const [body, status, field] of [
      ["", 400, "body"],
      ["1;", 400, "body"],
      ["1;64\nx:m:1\tL;", 400, "body"],
      [`2;\n${good}`, 400, "body"],
      [`1;\n${good}\n`, 400, "body"],
      [`1;\n${good}\nx:m:1`, 400, "body"],
      [`1;\n${good}\nx:m:1\tQ;`, 400, "body"],
      [`1;\n${good}\n\tL;`, 400, "key"],
      [`1;\n${good}\né\tL;`, 400, "key"],
      [`1;\n${good}\n${"k".repeat(1_025)}\tL;`, 400, "key"],
      [lines(257), 400, "body"],
      [`1;\n${good}\nx:m:1\tD;t;1;;${"x".repeat(512 * 1024)}`, 413, undefined],
    ]) {
      const { status: told, text } = await post(body);
      const { error } = JSON.parse(text);
      assert.deepEqual([told, error.field], [status, field], text);
    }
    assert.equal((await post(lines(256))).status, 200);
    assert.equal((await post(`1;\n${good}`, { kind: "application/json" })).status, 415);
    assert.equal((await post(`1;\n${good}`, { token: "wrong" })).status, 401);
    assert.equal((await post(`1;\napp:m:1\tL;\n${good}`, { token: BOUND_TOKEN })).status, 403);
    assert.equal((await post(`1;\n${good}`)).text, "1", "none of them ran");
    assert.equal((await fetch(`${worker.url}/v1/steps`)).status, 401);
  });
});
