// The proxy that the other tests rely on, as the protocol's own client sees it.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Redis } from "@upstash/redis";
import { TOKEN } from "./proxy.mjs";
import { serve } from "./served.mjs";

let served;

before(async () => {
  served = await serve();
});

after(() => served.stop());

const raw = (path, request = {}) =>
  fetch(served.proxy.url + path, {
    method: "POST",
    ...request,
    headers: { authorization: `Bearer ${TOKEN}`, ...request.headers },
  });

for (const responseEncoding of ["base64", false]) {
  describe(`@upstash/redis, ${responseEncoding || "plain"} answers`, () => {
    const made = (options) =>
      new Redis({
        url: served.proxy.url,
        token: TOKEN,
        responseEncoding,
        automaticDeserialization: false,
        enableTelemetry: false,
        ...options,
      });

    test("values of all kinds come back as they were", async () => {
      const redis = made();
      await served.client.flushall();
      assert.equal(await redis.set("text", "väl\u2028ue 🌊 \u0000\n\"'"), "OK");
      assert.equal(await redis.get("text"), "väl\u2028ue 🌊 \u0000\n\"'");
      assert.equal(await redis.get("nothing"), null);
      assert.equal(await redis.set("text", "again", { nx: true }), null);
      assert.equal(await redis.incrby("count", 9_007_199_254_740_990), 9_007_199_254_740_990);
      await redis.set("ok", "OK");
      assert.deepEqual(await redis.mget("count", "nothing", "text"), [
        "9007199254740990",
        null,
        "väl\u2028ue 🌊 \u0000\n\"'",
      ]);
      assert.equal(await redis.ping(), "PONG");
    });

    test("scripts, by text and by hash", async () => {
      const redis = made();
      const script = "return {KEYS[1], ARGV[1], 7, {'nested', 8}, false}";
      const reply = ["key", "argument", 7, ["nested", 8], null];
      assert.deepEqual(await redis.eval(script, ["key"], ["argument"]), reply);
      const sha = await redis.scriptLoad(script);
      assert.deepEqual(await redis.evalsha(sha, ["key"], ["argument"]), reply);
      await assert.rejects(redis.evalsha("0".repeat(40), [], []), /NOSCRIPT/);
      await assert.rejects(
        redis.eval("return redis.error_reply('MINE is mine')", [], []),
        /MINE is mine/,
      );
    });

    test("pipelines and transactions", async () => {
      const redis = made();
      const both = [redis.pipeline(), redis.multi()];
      for (const many of both) {
        many.set("many", "1").incr("many").get("many").get("none");
        assert.deepEqual(await many.exec(), ["OK", 2, "2", null]);
        many.lpush("many", "x").get("many");
        await assert.rejects(many.exec(), /WRONGTYPE/);
      }
    });

    test("errors are errors", async () => {
      await assert.rejects(made().exec(["GET"]), /wrong number of arguments/);
      await assert.rejects(made().exec(["NOSUCHCOMMAND"]), /unknown command/);
      await assert.rejects(made({ token: "wrong" }).get("text"), /WRONGPASS/);
    });
  });
}

test("bytes that are no text: whole in base64, replaced without", async () => {
  const { client } = served;
  await client.set("bytes", Buffer.from([0x6d, 0xff, 0x00, 0xfe]));
  const get = async (headers) => (await raw("/", { body: '["GET","bytes"]', headers })).json();
  assert.deepEqual(await get({ "Upstash-Encoding": "base64" }), { result: "bf8A/g==" });
  assert.deepEqual(await get({}), { result: "m\ufffd\u0000\ufffd" });
});

test("statuses: 200, 400, 401, 405", async () => {
  const command = async (body, request) => {
    const response = await raw("/", { body, ...request });
    return [response.status, await response.json()];
  };
  assert.deepEqual(await command('["SET","s","v","EX",100]'), [200, { result: "OK" }]);
  assert.deepEqual(
    await command('["SET","s","v"]', { headers: { "Upstash-Encoding": "base64" } }),
    [200, { result: "OK" }],
  );
  const [status, { error }] = await command('["INCR","s"]');
  assert.deepEqual([status, error], [400, "ERR value is not an integer or out of range"]);
  assert.equal((await command("no JSON"))[0], 400);
  assert.equal((await command('["PING"]', { headers: { authorization: "Bearer wrong" } }))[0], 401);
  assert.equal((await command(undefined, { method: "DELETE" }))[0], 405);
});

test("a transaction that is discarded is one error", async () => {
  const response = await raw("/multi-exec", { body: '[["SET","discarded","1"],["GET"]]' });
  assert.equal(response.status, 400);
  assert.match((await response.json()).error, /EXECABORT/);
  assert.equal(await served.client.get("discarded"), null);
});

test("commands in the path, and the token in the query", async () => {
  const json = async (path, request) => (await raw(path, request)).json();
  assert.deepEqual(await json("/set/in%2Fpath?EX=100", { body: "{}" }), { result: "OK" });
  assert.ok((await served.client.ttl("in/path")) > 90);
  const response = await fetch(`${served.proxy.url}/get/in%2Fpath?_token=${TOKEN}`);
  assert.deepEqual(await response.json(), { result: "{}" });
});

test("the official client sends back what the server told of its state", async () => {
  const redis = new Redis({ url: served.proxy.url, token: TOKEN });
  await redis.set("a", 1);
  await redis.get("a");
  const [first, second] = served.proxy.requests.slice(-2);
  assert.equal(first.headers["upstash-sync-token"], "");
  assert.match(second.headers["upstash-sync-token"], /^state-\d+$/);
});
