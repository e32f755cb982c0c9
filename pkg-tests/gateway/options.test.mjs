import assert from "node:assert/strict";
import { test } from "node:test";
import { MemoryStore, storeFrom, TidegateError } from "tidegate";
import { createGateway } from "tidegate/socket.io";

const limit = { limit: 1, window: "1s" };

test("what makes no sense is refused at once, by the name of the option and its value", () => {
  const events = (rule) => ({ events: { chat: rule } });
  const wrong = [
    [7, /options.*7/],
    [null, /options.*null/],
    [{ evnets: {} }, /unknown option "evnets"/],
    [{ store: {} }, /"store".*an object/],
    [{ prefix: "" }, /"prefix".*""/],
    [{ identify: "user" }, /"identify".*"user"/],
    [{ onStoreError: "throw" }, /"onStoreError".*"throw"/],
    [{ timeout: 0 }, /"timeout".*0/],
    [{ timeout: "10 parsecs" }, /"timeout".*"10 parsecs"/],
    [{ queueLimit: 0 }, /"queueLimit".*0/],
    [{ queueLimit: 1.5 }, /"queueLimit".*1\.5/],
    [{ acks: "loud" }, /"acks".*"loud"/],
    [{ dryRun: "yes" }, /"dryRun".*"yes"/],
    [{ trustProxy: -1 }, /"trustProxy".*-1/],
    [{ trustProxy: true }, /"trustProxy".*true/],
    [{ trustProxy: ["10.0.0.0/33"] }, /"trustProxy\[0\]".*"10\.0\.0\.0\/33"/],
    [{ trustProxy: ["::1", "loopback"] }, /"trustProxy\[1\]".*"loopback"/],
    [{ trustProxy: [7] }, /"trustProxy\[0\]".*7/],
    [{ disconnectAfter: 3 }, /disconnectAfter.*3/],
    [{ disconnectAfter: { denials: 0, window: 1 } }, /disconnectAfter.*"denials".*0/],
    [{ disconnectAfter: { denials: 1 } }, /disconnectAfter.*"window".*undefined/],
    [{ connect: 5 }, /connect.*5/],
    [{ connect: {} }, /connect.*"limit".*undefined/],
    [{ connect: { limit, max: 1 } }, /connect.*unknown option "max"/],
    [{ connect: { limit, maxSockets: 0 } }, /connect.*"maxSockets".*0/],
    [{ connect: { limit, identify: 1 } }, /connect.*"identify".*1/],
    [{ connect: { limit: { limit: 0, window: 1 } } }, /connect.*"limit".*0/],
    [{ burst: 5 }, /burst.*5/],
    [{ burst: { threshold: 5, window: "1s" } }, /burst.*"onBurst".*undefined/],
    [{ burst: { threshold: 0, window: "1s", onBurst() {} } }, /burst.*"threshold".*0/],
    [{ burst: { threshold: 5, window: "1s", onBurst() {}, when: true } }, /burst.*"when".*true/],
    [{ burst: { threshold: 5, window: "1s", onBurst() {}, trigger: "sliding" } }, /burst.*unknown/],
    [{ events: [] }, /"events".*an array/],
    [events(5), /events\["chat"\].*5/],
    [events({ limits: limit }), /events\["chat"\].*unknown option "limits"/],
    [events({ limit: { ...limit, window: 0 } }), /events\["chat"\].*"window".*0/],
    [events({ limit: [] }), /events\["chat"\]/],
    [events({ cost: 2 }), /events\["chat"\].*"limit".*undefined/],
    [events({ limit, cost: 0 }), /events\["chat"\].*"cost".*0/],
    [events({ limit, cost: "2" }), /events\["chat"\].*"cost".*"2"/],
    [events({ dedup: true }), /events\["chat"\].*"dedup".*true/],
    [events({ dedup: { ttl: 0 } }), /events\["chat"\].*"ttl".*0/],
    [events({ dedup: { lease: "x" } }), /events\["chat"\].*"lease".*"x"/],
    [events({ dedup: { id: "mid" } }), /events\["chat"\].*"id".*"mid"/],
    [events({ dedup: { key: 1 } }), /events\["chat"\].*unknown option "key"/],
  ];
  for (const [options, message] of wrong) {
    assert.throws(
      () => createGateway(options),
      (error) => {
        assert.ok(error instanceof TidegateError, String(error));
        assert.equal(error.code, "bad_policy", String(error));
        assert.match(error.message, message);
        return true;
      },
    );
  }
});

test("a store that loses races is refused", () => {
  const adapter = { get: () => null, compareAndSet: () => true, atomicity: "best-effort" };
  for (const rule of [{ limit }, { dedup: {} }]) {
    assert.throws(() => createGateway({ store: storeFrom(adapter), events: { chat: rule } }), {
      code: "unsupported",
    });
  }
});

test("what makes sense is accepted", () => {
  createGateway();
  createGateway({ events: {} });
  createGateway({
    store: new MemoryStore(),
    prefix: "app",
    identify: (socket) => socket.id,
    connect: { limit: [limit, { name: "hour", limit: 9, window: "1h" }], maxSockets: 5 },
    events: {
      "*": { limit },
      chat: { limit: [limit], cost: 1, dedup: { ttl: "1d", lease: "1m", id: () => undefined } },
      free: {},
    },
    burst: { threshold: 5, window: "1s", cooldown: "1m", when: () => true, onBurst() {} },
    onStoreError: "local",
    timeout: "1s",
    trustProxy: ["10.0.0.0/8", "2001:db8::/32", "::1", "192.0.2.1"],
    queueLimit: 1,
    acks: () => ({}),
    dryRun: true,
    disconnectAfter: { denials: 5, window: "1m" },
  });
});
