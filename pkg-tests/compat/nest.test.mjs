import "reflect-metadata";
import assert from "node:assert/strict";
import { test } from "node:test";
import { Controller, Get, Module, UseGuards } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { ThrottlerGuard, ThrottlerModule } from "@nestjs/throttler";
import { storeFrom } from "tidegate";
import { nestThrottlerStorage } from "tidegate/compat";
import { MapStore } from "../arkos/map-store.mjs";
import { frozenStore, frozenTable } from "../core/clock.mjs";
import { statuses } from "./served.mjs";

const minute = 60_000;
const kinds = [
  ["memory", frozenStore],
  [
    "a conditional write",
    () => {
      const { clock, adapter } = frozenTable();
      return { clock, store: storeFrom(adapter) };
    },
  ],
];

/** Decorators without their syntax. */
function decorated(target, decorators, property) {
  const descriptor = property && Object.getOwnPropertyDescriptor(target, property);
  Reflect.decorate(decorators, target, property, descriptor);
}

/** A listening app whose one controller is throttled. */
async function app(t, throttlers, storage) {
  class Greeting {
    get() {
      return "ok";
    }
    other() {
      return "ok";
    }
  }
  decorated(Greeting.prototype, [Get("/")], "get");
  decorated(Greeting.prototype, [Get("/other")], "other");
  decorated(Greeting, [Controller(), UseGuards(ThrottlerGuard)]);
  class App {}
  const imports = [ThrottlerModule.forRoot({ throttlers, storage })];
  decorated(App, [Module({ imports, controllers: [Greeting] })]);
  const application = await NestFactory.create(App, { logger: false });
  t.after(() => application.close());
  await application.listen(0, "127.0.0.1");
  return `http://127.0.0.1:${application.getHttpServer().address().port}`;
}

for (const [name, make] of kinds) {
  test(`${name}: three, then none for as long as a block lasts, then three again`, async (t) => {
    const { clock, store } = make();
    const throttler = { ttl: minute, limit: 3, blockDuration: 5_000 };
    const url = await app(t, [throttler], nestThrottlerStorage(store));
    const first = await fetch(url);
    assert.equal(first.headers.get("x-ratelimit-limit"), "3");
    assert.equal(first.headers.get("x-ratelimit-remaining"), "2");
    assert.equal(first.headers.get("x-ratelimit-reset"), "60");
    assert.deepEqual(await statuses(url, 3), [200, 200, 429]);
    assert.deepEqual(await statuses(`${url}/other`, 1), [200], "each handler counts apart");
    clock.ms += 4_999;
    const refused = await fetch(url);
    assert.deepEqual([refused.status, refused.headers.get("retry-after")], [429, "1"]);
    clock.ms += 1;
    assert.deepEqual(await statuses(url, 4), [200, 200, 200, 429]);
  });

  test(`${name}: without a duration of its own a block lasts a whole ttl`, async (t) => {
    const { clock, store } = make();
    const url = await app(t, [{ ttl: minute, limit: 1 }], nestThrottlerStorage(store));
    assert.deepEqual(await statuses(url, 1), [200]);
    clock.ms += 50_000;
    const refused = await fetch(url);
    assert.deepEqual([refused.status, refused.headers.get("retry-after")], [429, "60"]);
    clock.ms += 59_999;
    assert.deepEqual(await statuses(url, 1), [429]);
    clock.ms += 1;
    assert.deepEqual(await statuses(url, 1), [200]);
  });

  test(`${name}: with a duration of 0 nobody is blocked longer than the window lasts`, async (t) => {
    const { clock, store } = make();
    const throttler = { ttl: minute, limit: 1, blockDuration: 0 };
    const url = await app(t, [throttler], nestThrottlerStorage(store));
    assert.deepEqual(await statuses(url, 1), [200]);
    clock.ms += 50_000;
    const refused = await fetch(url);
    assert.deepEqual([refused.status, refused.headers.get("retry-after")], [429, "10"]);
    clock.ms += 10_000;
    assert.deepEqual(await statuses(url, 2), [200, 429]);
  });

  test(`${name}: many at once get the limit and no more`, async (t) => {
    const url = await app(t, [{ ttl: minute, limit: 3 }], nestThrottlerStorage(make().store));
    const all = await Promise.all(Array.from({ length: 30 }, () => fetch(url)));
    assert.equal(all.filter(({ status }) => status === 200).length, 3);
    assert.equal(all.filter(({ status }) => status === 429).length, 27);
  });
}

test("throttlers count apart, each with its own headers", async (t) => {
  const { clock, store } = frozenStore();
  const throttlers = [
    { name: "short", ttl: 1_000, limit: 2, blockDuration: 0 },
    { name: "long", ttl: minute, limit: 3, blockDuration: 0 },
  ];
  const url = await app(t, throttlers, nestThrottlerStorage(store));
  const first = await fetch(url);
  assert.equal(first.headers.get("x-ratelimit-remaining-short"), "1");
  assert.equal(first.headers.get("x-ratelimit-remaining-long"), "2");
  assert.deepEqual(await statuses(url, 2), [200, 429]);
  clock.ms += 1_000;
  assert.deepEqual(await statuses(url, 2), [200, 429]);
});

test("the record is what the interface says", async () => {
  const { clock, store } = frozenStore();
  const storage = nestThrottlerStorage(store);
  const hit = (limit = 1, name = "a") => storage.increment("key", 1_500, limit, 2_500, name);
  const admitted = { totalHits: 1, timeToExpire: 2, isBlocked: false, timeToBlockExpire: 0 };
  assert.deepEqual(await hit(), admitted);
  const denied = await hit();
  assert.deepEqual([denied.totalHits, denied.isBlocked, denied.timeToBlockExpire], [2, true, 3]);
  clock.ms += 1_600;
  assert.equal((await hit()).timeToBlockExpire, 1);
  clock.ms += 900;
  assert.deepEqual(await hit(), admitted);
  assert.deepEqual(await hit(1, "b"), admitted, "another throttler");
  const none = await hit(0, "c");
  assert.deepEqual([none.isBlocked, none.timeToBlockExpire], [true, 3]);
  await storage.onApplicationShutdown();
});

test("a bounded store without room denies newcomers", async () => {
  const { store } = frozenStore({ maxKeys: 1 });
  const storage = nestThrottlerStorage(store);
  const hit = (key) => storage.increment(key, minute, 5, minute, "default");
  assert.equal((await hit("a")).isBlocked, false);
  assert.equal((await hit("b")).isBlocked, true);
  assert.equal((await hit("a")).isBlocked, false);
});

test("a store that fails, or that cannot block, is an error", async () => {
  const failing = storeFrom({ get: () => Promise.reject(new Error("down")), compareAndSet() {} });
  const hit = (storage) => storage.increment("key", minute, 1, minute, "default");
  await assert.rejects(hit(nestThrottlerStorage(failing)), { code: "store" });
  const arkos = nestThrottlerStorage(storeFrom(new MapStore()));
  await hit(arkos);
  await assert.rejects(hit(arkos), { code: "unsupported" });
  assert.throws(() => nestThrottlerStorage({}), { code: "bad_policy" });
});
