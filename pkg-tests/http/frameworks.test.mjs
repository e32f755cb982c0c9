// What holds in every framework.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parseList } from "structured-headers";
import { storeFrom } from "tidegate";
import { statuses } from "../compat/served.mjs";
import { frozenStore, frozenTable } from "../core/clock.mjs";
import { hosts } from "./hosts.mjs";

const three = { limit: 3, window: "1m" };

function frozen() {
  const { clock, adapter } = frozenTable();
  return { clock, store: storeFrom(adapter) };
}

const down = () =>
  storeFrom({
    get: () => Promise.reject(new Error("down")),
    compareAndSet: () => Promise.reject(new Error("down")),
  });

/** A field's items: their names, and their parameters. */
const items = (response, name) =>
  parseList(response.headers.get(name)).map(([item, parameters]) => [
    item,
    Object.fromEntries(parameters),
  ]);

for (const [name, start] of Object.entries(hosts)) {
  describe(name, () => {
    for (const [kind, make] of Object.entries({ memory: frozenStore, "a database": frozen })) {
      test(`${kind}: three, a refusal, and the next when it said`, async (t) => {
        const { clock, store } = make();
        const url = await start(t, { limit: three, store }, []);
        const first = await fetch(url);
        assert.deepEqual([first.status, await first.text()], [200, "hello"]);
        assert.deepEqual(items(first, "ratelimit-policy"), [["default", { q: 3, w: 60 }]]);
        assert.deepEqual(items(first, "ratelimit"), [["default", { r: 2, t: 20 }]]);
        assert.equal(first.headers.get("retry-after"), null);
        assert.equal(first.headers.get("x-ratelimit-limit"), null);
        clock.ms += 500;
        assert.deepEqual(await statuses(url, 2), [200, 200]);

        const refused = await fetch(url);
        assert.equal(refused.status, 429);
        // 19.5 seconds: a whole number of them, and never too early.
        assert.equal(refused.headers.get("retry-after"), "20");
        assert.deepEqual(items(refused, "ratelimit"), [["default", { r: 0, t: 20 }]]);
        assert.match(refused.headers.get("content-type"), /^application\/problem\+json\b/);
        assert.deepEqual(await refused.json(), {
          type: "https://iana.org/assignments/http-problem-types#quota-exceeded",
          title: "Request cannot be satisfied as assigned quota has been exceeded",
          status: 429,
          reason: "limited",
          retryAfterMs: 19_500,
          "violated-policies": ["default"],
        });
        clock.ms += 19_500;
        assert.deepEqual(await statuses(url, 2), [200, 429]);
      });
    }

    test("many at once: the limit is admitted, and no more", async (t) => {
      const url = await start(t, { limit: three, store: frozen().store }, []);
      const all = await Promise.all(Array.from({ length: 20 }, () => fetch(url)));
      assert.equal(all.filter(({ status }) => status === 200).length, 3);
      assert.equal(all.filter(({ status }) => status === 429).length, 17);
    });

    test("bodies stream through in both directions", async (t) => {
      const url = await start(t, { limit: three, store: frozen().store }, []);
      const body = "x".repeat(300_000);
      const headers = { "content-type": "application/octet-stream" };
      const echo = () => fetch(`${url}/echo`, { method: "POST", body, headers });
      const echoed = await echo();
      assert.equal(await echoed.text(), body);
      assert.ok(echoed.headers.has("ratelimit"));
      const streamed = await fetch(`${url}/stream`);
      assert.equal(await streamed.text(), "one two three");
      assert.ok(streamed.headers.has("ratelimit"));
      assert.equal((await echo()).status, 200);
      // A body that nobody reads does not hold up the refusal, or the connection.
      assert.deepEqual([(await echo()).status, (await fetch(url)).status], [429, 429]);
    });

    test("what a handler throws is its own error, and was counted", async (t) => {
      const errors = [];
      const url = await start(t, { limit: three, store: frozen().store }, errors);
      const failed = await fetch(`${url}/fails`);
      assert.equal(failed.status, 500);
      assert.equal(failed.headers.get("retry-after"), null);
      assert.deepEqual(
        errors.map(({ message }) => message),
        ["handler"],
      );
      assert.deepEqual(await statuses(url, 3), [200, 200, 429]);
    });

    test("what the user's own functions throw or answer wrongly is an error, and no refusal", async (t) => {
      const wrong = {
        key: () => undefined,
        cost: () => 0,
        skip: async () => true,
      };
      for (const [option, answer] of Object.entries(wrong)) {
        const errors = [];
        const url = await start(t, { limit: three, [option]: answer }, errors);
        assert.deepEqual(await statuses(url, 1), [500]);
        assert.deepEqual([errors.length, errors[0].code], [1, "bad_argument"], option);
        assert.match(errors[0].message, new RegExp(option));
      }
      const errors = [];
      const thrown = new Error("mine");
      const key = () => {
        throw thrown;
      };
      const url = await start(t, { limit: three, key }, errors);
      assert.deepEqual(await statuses(url, 1), [500]);
      assert.deepEqual(errors, [thrown]);
    });

    test("costs, keys and skips are read from the framework's own request", async (t) => {
      const read = (request, field) =>
        request.req?.header(field) ?? request.headers[field] ?? request.headers.get?.(field);
      const url = await start(
        t,
        {
          limit: three,
          store: frozen().store,
          key: (request) => `user:${read(request, "x-user")}`,
          cost: (request) => Number(read(request, "x-cost")),
          skip: (request) => read(request, "x-user") === "root",
        },
        [],
      );
      const as = (user, cost) =>
        fetch(url, { headers: { "x-user": user, "x-cost": String(cost) } });
      assert.deepEqual(items(await as("a", 2), "ratelimit"), [["default", { r: 1, t: 40 }]]);
      const dear = await as("a", 2);
      assert.deepEqual([dear.status, dear.headers.get("retry-after")], [429, "20"]);
      assert.equal((await as("a", 1)).status, 200);
      assert.equal((await as("b", 3)).status, 200);
      const never = await as("c", 4);
      assert.deepEqual([never.status, never.headers.get("retry-after")], [429, null]);
      assert.equal((await never.json()).retryAfterMs, null);
      for (let request = 0; request < 5; request += 1) {
        const skipped = await as("root", 1);
        assert.deepEqual([skipped.status, skipped.headers.get("ratelimit")], [200, null]);
      }
    });

    test("several limits are one decision, and each of several middlewares tells its own", async (t) => {
      const limit = [
        { name: "burst", limit: 2, window: "1s" },
        { name: "day", algorithm: "fixed-window", limit: 3, window: "1d" },
      ];
      const { clock, store } = frozen();
      const one = await start(t, { limit, store }, []);
      const first = await fetch(one);
      assert.deepEqual(items(first, "ratelimit-policy"), [
        ["burst", { q: 2, w: 1 }],
        ["day", { q: 3, w: 86_400 }],
      ]);
      assert.deepEqual(items(first, "ratelimit")[0][0], "burst");
      assert.deepEqual(await statuses(one, 2), [200, 429]);
      clock.ms += 1_000;
      assert.deepEqual(await statuses(one, 2), [200, 429]);
      const day = await fetch(one);
      assert.deepEqual(items(day, "ratelimit"), [["day", { r: 0, t: 86_399 }]]);
      assert.equal(day.headers.get("retry-after"), "86399");

      const both = limit.map((each) => ({ limit: each, store: frozenStore().store }));
      const two = await fetch(await start(t, both, []));
      assert.deepEqual(
        items(two, "ratelimit").map(([item]) => item),
        items(two, "ratelimit-policy").map(([item]) => item),
      );
      assert.deepEqual(
        items(two, "ratelimit")
          .map(([item]) => item)
          .sort(),
        ["burst", "day"],
      );
    });

    test("a store that fails: what is chosen, and never a wrong figure", async (t) => {
      const options = { limit: three, store: down() };
      const local = await start(t, options, []);
      assert.deepEqual(await statuses(local, 4), [200, 200, 200, 429]);
      const allowing = await start(t, { ...options, onStoreError: "allow" }, []);
      for (let request = 0; request < 5; request += 1) {
        const { status, headers } = await fetch(allowing);
        assert.deepEqual([status, headers.get("ratelimit")], [200, null]);
      }
      const denying = await start(t, { ...options, onStoreError: "deny" }, []);
      const denied = await fetch(denying);
      assert.deepEqual([denied.status, denied.headers.get("ratelimit")], [429, null]);
      assert.match(denied.headers.get("retry-after"), /^[1-9]\d*$/);
      const { type, reason } = await denied.json();
      assert.deepEqual([type, reason], ["about:blank", "store-error"]);
    });

    test("a dry run refuses nobody", async (t) => {
      const url = await start(t, { limit: three, dryRun: true }, []);
      assert.deepEqual(await statuses(url, 6), Array(6).fill(200));
    });

    test("older names on request, or none", async (t) => {
      const { store } = frozenStore();
      const limited = (headers, key) =>
        start(t, { limit: three, store, headers, key: () => key }, []);
      const names = ["ratelimit", "ratelimit-policy", "x-ratelimit-limit", "x-ratelimit-remaining"];
      const told = async (url) => {
        const { headers } = await fetch(url);
        return names.map((field) => headers.get(field));
      };
      assert.deepEqual(await told(await limited("legacy", "a")), [null, null, "3", "2"]);
      assert.ok((await told(await limited("both", "b"))).every((value) => value !== null));
      const none = await limited(false, "c");
      assert.deepEqual(await told(none), Array(4).fill(null));
      assert.deepEqual(await statuses(none, 3), [200, 200, 429]);
      assert.equal((await fetch(none)).headers.get("retry-after"), "20");
      const legacy = await fetch(await limited("legacy", "d"));
      const reset = Number(legacy.headers.get("x-ratelimit-reset"));
      assert.ok(Math.abs(reset - (Date.now() / 1000 + 20)) < 5, String(reset));
    });
  });
}
