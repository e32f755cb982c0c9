import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { io } from "socket.io-client";
import { rules } from "../../js/demo/rules.mjs";
import { Demo } from "./demo.mjs";

let demo;
before(async () => {
  demo = await Demo.listening();
});
after(() => demo.end("SIGTERM"));

let guests = 0;
const guest = () => `guest-${(guests++).toString(16).padStart(8, "0")}`;

/** A connected client, of a guest of its own unless told. */
async function client(test, user = guest()) {
  const socket = io(await demo.url(), { auth: { user } });
  test.after(() => socket.disconnect());
  await new Promise((resolve, reject) => socket.on("connect", resolve).on("connect_error", reject));
  return socket;
}

const burst = (socket, event, count) =>
  Promise.all(Array.from({ length: count }, (_, mid) => socket.emitWithAck(event, { mid })));

test("a leaky bucket takes what it holds and refuses the rest, with the time to wait", async (t) => {
  const { limit, window } = rules.chat.limit;
  const started = performance.now();
  const answers = await burst(await client(t), "chat", 2 * limit);
  const leaked = Math.floor((performance.now() - started) / (window / limit));

  const accepted = answers.filter(({ ok }) => ok);
  assert.ok(accepted.length >= limit && accepted.length <= limit + leaked, `${accepted.length}`);
  assert.ok(answers.slice(0, limit).every(({ ok }) => ok));
  const { ok, error } = answers.at(-1);
  assert.equal(ok, false);
  assert.equal(error.code, "RATE_LIMITED");
  assert.equal(error.limit, limit);
  assert.equal(error.remaining, 0);
  assert.ok(
    error.retryAfterMs > 0 && error.retryAfterMs <= window / limit,
    `${error.retryAfterMs}`,
  );
});

test("a fixed window takes its limit, and says when it ends", async (t) => {
  const { limit, window } = rules.order.limit;
  const answers = await burst(await client(t), "order", limit + 1);
  assert.deepEqual(
    answers.map(({ ok }) => ok),
    [...Array(limit).fill(true), false],
  );
  const { retryAfterMs } = answers.at(-1).error;
  assert.ok(retryAfterMs > window / 2 && retryAfterMs <= window, `${retryAfterMs}`);
});

test("a message delivered twice is handled once, and both deliveries get its acknowledgement", async (t) => {
  const socket = await client(t);
  const send = () => socket.emitWithAck("order", { mid: "one" });
  const [first, second] = await Promise.all([send(), send()]);
  assert.equal(first.ok, true);
  assert.deepEqual(second, first);
  assert.deepEqual(await send(), first);
  assert.notDeepEqual(await socket.emitWithAck("order", { mid: "two" }), first);
});

test("over its limit, a message that is done still gets its acknowledgement", async (t) => {
  const socket = await client(t);
  const [first] = await burst(socket, "order", rules.order.limit.limit);
  assert.equal((await socket.emitWithAck("order", { mid: "new" })).error.code, "RATE_LIMITED");
  assert.deepEqual(await socket.emitWithAck("order", { mid: 0 }), first);
});

/** What a page is told of the budget for an event. */
const told = (socket, event) =>
  new Promise((resolve) => {
    socket.on("budget", (name, decision) => name === event && resolve(decision));
  });

test("a guest's budget is the guest's alone, and all its pages are told of it", async (t) => {
  const { limit } = rules.order.limit;
  const user = guest();
  const [page, other] = [await client(t, user), await client(t)];
  await burst(page, "order", limit);
  assert.equal((await other.emitWithAck("order", {})).ok, true);

  const later = io(await demo.url(), { auth: { user } });
  t.after(() => later.disconnect());
  assert.equal((await told(later, "order")).remaining, 0);
  const both = Promise.all([told(page, "chat"), told(later, "chat")]);
  await later.emitWithAck("chat", {});
  for (const { remaining } of await both) assert.equal(remaining, rules.chat.limit.limit - 1);
});

test("a client that names no guest is limited and its messages are deduplicated", async (t) => {
  const socket = await client(t, null);
  const [first, again] = await Promise.all(
    [1, 1].map((mid) => socket.emitWithAck("order", { mid })),
  );
  assert.deepEqual(again, first);
  const answers = await burst(socket, "chat", rules.chat.limit.limit + 1);
  assert.equal(answers.at(-1).error.code, "RATE_LIMITED");
});
