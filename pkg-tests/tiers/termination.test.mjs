// What a gateway's process holds goes back when it is told to end, and the process ends as it would have.

import assert from "node:assert/strict";
import { fork, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { Redis } from "ioredis";
import { Limiter, TieredStore } from "tidegate";
import { RedisStore } from "tidegate/redis";
import { createGateway } from "tidegate/socket.io";
import { Server } from "../redis/servers.mjs";

let server;
let client;
let prefixes = 0;
before(async () => {
  server = await Server.start();
  client = new Redis(server.port);
});
after(async () => {
  client.disconnect();
  await server.stop();
});

const limit = { limit: 800, window: "1h", algorithm: "fixed-window" };

/** A process that holds something, and how many units the server counts. */
async function gateway(t, mode, ending) {
  const process = fork(join(import.meta.dirname, "gateway.mjs"));
  t.after(() => process.kill("SIGKILL"));
  await once(process, "message");
  const prefix = `gateway${prefixes++}`;
  process.send({ port: server.port, prefix, mode, limit, ending });
  const [{ spent, key }] = await once(process, "message");
  const l2 = new RedisStore(client, { prefix });
  const direct = new Limiter({ limit, store: l2, timeout: "5s" });
  const used = async () => limit.limit - (await direct.peek(key)).remaining;
  return { process, spent, used };
}

/** Holds more than it spent, or owes what it spent. */
function assertUnsettled(mode, used, spent) {
  if (mode === "lease") assert.ok(used > spent, `${used} charged for ${spent}`);
  else assert.ok(used < spent, `${used} charged for ${spent}`);
}

for (const mode of ["lease", "eager"]) {
  test(`${mode}: gateway.close settles`, async (t) => {
    const { process, spent, used } = await gateway(t, mode);
    assertUnsettled(mode, await used(), spent);
    process.send("close");
    await once(process, "message");
    assert.equal(await used(), spent);
  });

  test(`${mode}: SIGTERM settles, and ends the process as it would have`, async (t) => {
    const { process, spent, used } = await gateway(t, mode);
    assertUnsettled(mode, await used(), spent);
    process.kill("SIGTERM");
    const [code, signal] = await once(process, "exit");
    assert.deepEqual([code, signal], [null, "SIGTERM"]);
    assert.equal(await used(), spent);
  });

  test(`${mode}: who listens for SIGTERM decides when the process ends`, async (t) => {
    const { process, spent, used } = await gateway(t, mode, "own");
    process.kill("SIGTERM");
    const [code, signal] = await once(process, "exit");
    assert.deepEqual([code, signal], [7, null]);
    assert.equal(await used(), spent);
  });

  test(`${mode}: a server that hangs holds the end up no longer than the deadline`, async (t) => {
    const { process, spent, used } = await gateway(t, mode);
    server.signal("SIGSTOP");
    t.after(() => server.signal("SIGCONT"));
    const start = performance.now();
    process.kill("SIGTERM");
    const [code, signal] = await once(process, "exit");
    assert.deepEqual([code, signal], [null, "SIGTERM"]);
    const took = performance.now() - start;
    assert.ok(took < 3_000, `after ${took} ms`);
    server.signal("SIGCONT");
    assert.ok((await used()) >= (mode === "lease" ? spent : 1));
  });

  test(`${mode}: a second SIGTERM is not waited with`, async (t) => {
    const { process } = await gateway(t, mode);
    server.signal("SIGSTOP");
    t.after(() => server.signal("SIGCONT"));
    process.kill("SIGTERM");
    const start = performance.now();
    while (process.exitCode === null && process.signalCode === null) {
      process.kill("SIGTERM");
      await pause(20);
    }
    const took = performance.now() - start;
    assert.ok(took < 480, `after ${took} ms`);
  });
}

test("deny-cache holds nothing, and listens for nothing", async (t) => {
  const before = process.listenerCount("SIGTERM");
  const l2 = new RedisStore(client, { prefix: "none" });
  const made = ["deny-cache", "lease", "eager"].map((mode) =>
    createGateway({ store: new TieredStore({ l2, mode }) }),
  );
  t.after(() => Promise.all(made.map((gateway) => gateway.close())));
  assert.equal(process.listenerCount("SIGTERM") - before, 1);
  await made[1].close();
  assert.equal(process.listenerCount("SIGTERM") - before, 1);
  await made[2].close();
  assert.equal(process.listenerCount("SIGTERM") - before, 0);
});

test("a wish that throws at once keeps neither the others from being heard nor the process from ending", async () => {
  const built = join(import.meta.dirname, "../node_modules/tidegate/dist/socket-io/termination.js");
  const script = `
    import { beforeTermination } from ${JSON.stringify(built)};
    beforeTermination(() => { throw new Error("no"); });
    beforeTermination(async () => console.log("heard"));
    setTimeout(() => {}, 10_000);
    process.kill(process.pid, "SIGTERM");
  `;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script]);
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (data) => {
      output += data;
    });
  }
  const [code, signal] = await once(child, "close");
  assert.deepEqual([code, signal, output], [null, "SIGTERM", "heard\n"]);
});
