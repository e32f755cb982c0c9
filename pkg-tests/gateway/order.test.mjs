import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { MemoryStore } from "tidegate";
import { as, believe, Database, gate, start, until } from "./harness.mjs";

const plenty = { limit: 100_000, window: "1s" };
const UNAVAILABLE = "STORE_UNAVAILABLE";

/** Notes what arrives, in order. */
function noting(handled, ...events) {
  return (socket) => {
    for (const event of events) {
      socket.on(event, (payload, acknowledge) => {
        handled.push(typeof payload === "object" ? payload.at : payload);
        acknowledge?.({ ok: true });
      });
    }
  };
}

test("packets of one socket reach the handlers in the order sent, however long the store takes", async (t) => {
  const handled = [];
  const database = new Database();
  const delays = [20, 1, 8, 0, 3];
  database.before = () => pause(delays[database.calls % delays.length]);
  const { connect } = await start(
    t,
    {
      store: database.store(),
      timeout: "5s",
      events: {
        limited: { limit: plenty },
        once: { dedup: {} },
        both: { limit: plenty, dedup: {} },
      },
    },
    { onConnection: noting(handled, "limited", "once", "both", "free") },
  );
  const client = await connect();
  const events = ["limited", "once", "free", "both"];
  for (let at = 0; at < 24; at += 1) client.emit(events[at % events.length], { at, mid: at });
  await until(() => handled.length === 24);
  assert.deepEqual(
    handled,
    Array.from({ length: 24 }, (_, at) => at),
  );
});

test("over a synchronous store, too, with everything sent at once", async (t) => {
  const handled = [];
  const { connect } = await start(
    t,
    // Nobody waits for this store, so no queue is ever full.
    { queueLimit: 1, events: { once: { dedup: {} }, limited: { limit: plenty } } },
    { onConnection: noting(handled, "limited", "once", "free") },
  );
  const client = await connect({ transports: ["polling"] });
  const events = ["once", "limited", "free"];
  for (let at = 0; at < 3_000; at += 1) client.emit(events[at % events.length], { at, mid: at });
  await until(() => handled.length === 3_000);
  assert.deepEqual(
    handled,
    Array.from({ length: 3_000 }, (_, at) => at),
  );
  assert.deepEqual(client.rejected, []);
});

test("a synchronous store decides in the tick in which the packet came", async (t) => {
  const ticks = [];
  const { connect } = await start(
    t,
    { events: { limited: { limit: plenty } } },
    {
      onConnection: (socket) => {
        const { onevent } = socket;
        socket.onevent = (packet) => {
          ticks.push("arrived");
          process.nextTick(() => ticks.push("dispatched"));
          Promise.resolve().then(() => ticks.push("later"));
          onevent.call(socket, packet);
        };
        socket.use((_, next) => {
          ticks.push("admitted");
          next();
        });
        socket.on("limited", (acknowledge) => acknowledge());
      },
    },
  );
  await (await connect()).emitWithAck("limited");
  assert.deepEqual(ticks, ["arrived", "admitted", "dispatched", "later"]);
});

test("one socket does not wait for another's decision", async (t) => {
  const database = new Database();
  const { opened, open } = gate();
  database.before = (_, key) => (key.includes("ann") ? opened : undefined);
  const handled = [];
  const { connect } = await start(
    t,
    { store: database.store(), timeout: "5s", events: { chat: { limit: plenty } } },
    { before: believe, onConnection: noting(handled, "chat") },
  );
  const [ann, bob] = [await connect(as("ann")), await connect(as("bob"))];
  const waiting = ann.emitWithAck("chat", "ann");
  assert.deepEqual(await bob.emitWithAck("chat", "bob"), { ok: true });
  assert.deepEqual(handled, ["bob"]);
  open();
  assert.deepEqual(await waiting, { ok: true });
});

test("so many packets wait for the store and no more, and the client is told", async (t) => {
  const database = new Database();
  const { opened, open } = gate();
  database.before = () => opened;
  const handled = [];
  const { connect } = await start(
    t,
    { store: database.store(), timeout: "5s", queueLimit: 3, events: { chat: { limit: plenty } } },
    { onConnection: noting(handled, "chat", "free") },
  );
  const client = await connect();
  const answers = [1, 2, 3, 4].map((at) => client.emitWithAck("chat", at));
  client.emit("free", 5);
  const { ok, error } = await answers[3];
  assert.equal(ok, false);
  assert.deepEqual(error, { code: "OVERLOADED", retryAfterMs: 5_000, limit: 0, remaining: 0 });
  await until(() => client.rejected.length === 1);
  assert.equal(client.rejected[0][1].code, "OVERLOADED");
  open();
  for (const answer of await Promise.all(answers.slice(0, 3)))
    assert.deepEqual(answer, { ok: true });
  assert.deepEqual(handled, [1, 2, 3]);
});

test("copies that wait are counted, too", async (t) => {
  const { opened, open } = gate();
  const { connect } = await start(
    t,
    { queueLimit: 2, events: { order: { dedup: {} } } },
    {
      onConnection: (socket, gateway) => gateway.on(socket, "order", () => opened),
    },
  );
  const client = await connect();
  const answers = [1, 2, 3, 4].map(() => client.emitWithAck("order", { mid: "a" }));
  assert.equal((await answers[3]).error.code, "OVERLOADED");
  open("done");
  assert.deepEqual(await Promise.all(answers.slice(0, 3)), ["done", "done", "done"]);
});

test("what waits for the store when its socket leaves is dropped, uncharged and unclaimed", async (t) => {
  for (const send of ["emit", "emitWithAck"]) {
    const database = new Database();
    const held = gate();
    const handled = [];
    const { connect, io } = await start(
      t,
      {
        store: database.store(),
        timeout: "5s",
        events: { order: { limit: { limit: 3, window: "1h" }, dedup: { lease: "1h" } } },
      },
      { before: believe, onConnection: noting(handled, "order") },
    );
    const first = await connect(as("ann"));
    // Held once it is written: the claim is taken, and the answer on its way.
    let claims = 0;
    const { compareAndSet } = database;
    database.compareAndSet = async (...args) => {
      const wrote = await compareAndSet.apply(database, args);
      if (args[0].includes("order:a") && ++claims === 1) await held.opened;
      return wrote;
    };
    for (const mid of ["a", "b", "c"]) first.emit("order", { at: mid, mid });
    await until(() => claims === 1);
    first.disconnect();
    await until(() => io.sockets.sockets.size === 0);
    const second = await connect(as("ann"));
    second[send]("order", { at: "a", mid: "a" });
    held.open();
    await until(() => handled.length === 1);
    // One for each "a"; "b" and "c" were never decided on.
    const answers = [];
    for (const mid of ["d", "e"]) answers.push(await second.emitWithAck("order", { at: mid, mid }));
    assert.deepEqual(answers[0], { ok: true });
    assert.equal(answers[1].error.code, "RATE_LIMITED");
    assert.deepEqual(handled, ["a", "d"]);
  }
});

test("a store that fails: each policy, as the client sees it", async (t) => {
  const events = {
    limited: { limit: { limit: 1, window: "1h" } },
    once: { dedup: {} },
  };
  const failing = {
    throws: () => {
      throw new Error("down");
    },
    rejects: () => Promise.reject(new Error("down")),
    hangs: () => new Promise(() => {}),
  };
  for (const [how, before] of Object.entries(failing)) {
    for (const onStoreError of ["deny", "allow", "local"]) {
      const database = new Database();
      database.before = before;
      const handled = [];
      const { connect } = await start(
        t,
        { store: database.store(), timeout: 20, onStoreError, events },
        { onConnection: noting(handled, "limited", "once") },
      );
      const client = await connect();
      const seen = [];
      for (const event of ["limited", "limited", "once", "once"]) {
        const { ok, error } = await client.emitWithAck(event, { mid: "a", at: event });
        seen.push(ok ? "ok" : error.code);
        if (!ok) assert.ok(Number.isFinite(error.retryAfterMs) && error.retryAfterMs > 0);
      }
      const expected = {
        deny: [UNAVAILABLE, UNAVAILABLE, UNAVAILABLE, UNAVAILABLE],
        allow: ["ok", "ok", "ok", "ok"],
        // Decided in this process: one is over the limit, and the copy gets the first acknowledgement.
        local: ["ok", "RATE_LIMITED", "ok", "ok"],
      };
      assert.deepEqual(seen, expected[onStoreError], `${how}, ${onStoreError}`);
      const handledTimes = { deny: 0, allow: 4, local: 2 };
      assert.equal(handled.length, handledTimes[onStoreError], `${how}, ${onStoreError}`);
      client.disconnect();
    }
  }
});

test("a clock that tells nonsense refuses packets, and stops nothing", async (t) => {
  let now = 0;
  const { connect } = await start(
    t,
    {
      store: new MemoryStore({ now: () => now }),
      events: { limited: { limit: plenty }, once: { dedup: {} } },
    },
    { onConnection: noting([], "limited", "once") },
  );
  const client = await connect();
  now = Number.NaN;
  for (const event of ["limited", "once"]) {
    assert.equal((await client.emitWithAck(event, { mid: "a" })).error.code, UNAVAILABLE);
  }
  now = 1;
  for (const event of ["limited", "once"]) {
    assert.deepEqual(await client.emitWithAck(event, { mid: "a" }), { ok: true });
  }
});

test("what was handled while the store was away is handled once in this process, at work or over", async (t) => {
  const limited = { limit: plenty, dedup: {} };
  for (const [how, rule] of Object.entries({ limited, unlimited: { dedup: {} } })) {
    const database = new Database();
    const { opened, open } = gate();
    let runs = 0;
    const { connect } = await start(
      t,
      { store: database.store(), onStoreError: "local", events: { order: rule } },
      {
        onConnection: (socket, gateway) => {
          gateway.on(socket, "order", async () => {
            runs += 1;
            await opened;
            return runs;
          });
          socket.on("received", (acknowledge) => acknowledge());
        },
      },
    );
    const client = await connect();
    const send = () => client.emitWithAck("order", { mid: "a" });
    database.before = () => Promise.reject(new Error("down"));
    const first = send();
    await until(() => runs === 1);
    database.before = () => undefined;
    const asked = database.calls;
    const copy = send();
    // Behind the copy in the queue: it is decided on by then.
    await client.emitWithAck("received");
    assert.ok(database.calls > asked, "the store was asked again");
    open();
    assert.deepEqual([await first, await copy, await send(), runs], [1, 1, 1, 1], how);
  }
});

test("a store that answers again is used again", async (t) => {
  const database = new Database();
  database.before = () => Promise.reject(new Error("down"));
  const handled = [];
  const { connect } = await start(
    t,
    { store: database.store(), timeout: 50, events: { order: { dedup: {} } } },
    { onConnection: noting(handled, "order") },
  );
  const client = await connect();
  assert.equal((await client.emitWithAck("order", { mid: "a" })).error.code, UNAVAILABLE);
  database.before = () => undefined;
  assert.deepEqual(await client.emitWithAck("order", { mid: "a" }), { ok: true });
  assert.equal(handled.length, 1);
});
