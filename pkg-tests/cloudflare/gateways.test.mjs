// Two gateway processes over EdgeStore: one budget, and one acknowledgement of each message.

import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { io } from "socket.io-client";
import { serve, TOKEN } from "../worker/served.mjs";

let worker;
let nodes;
let clients;

before(async () => {
  worker = await serve();
  const env = { ...process.env, URL: worker.url, TOKEN };
  nodes = [1, 2].map(() => fork(join(import.meta.dirname, "gateway.mjs"), { env }));
  const ports = await Promise.all(nodes.map(async (node) => (await once(node, "message"))[0]));
  clients = ports.map((port) => io(`http://127.0.0.1:${port}`, { transports: ["websocket"] }));
  await Promise.all(clients.map((client) => once(client, "connect")));
});

after(async () => {
  for (const client of clients ?? []) client.close();
  for (const node of nodes ?? []) node.kill();
  await worker.stop();
});

test("two gateways admit exactly one limit", async () => {
  const chats = clients.flatMap((client) =>
    Array.from({ length: 30 }, () => client.timeout(10_000).emitWithAck("chat")),
  );
  const answers = await Promise.all(chats);
  assert.equal(answers.filter(({ ok }) => ok).length, 20);
  const { error } = answers.find(({ ok }) => !ok);
  assert.deepEqual([error.code, error.limit, error.remaining], ["RATE_LIMITED", 20, 0]);
});

test("a message that comes again at the other gateway gets the first one's acknowledgement", async () => {
  const order = (client, item) => client.timeout(10_000).emitWithAck("order", { mid: "m-1", item });
  const first = await order(clients[0], "tea");
  assert.deepEqual(first, { by: nodes[0].pid, item: "tea" });
  assert.deepEqual(await order(clients[1], "coffee"), first);
});
