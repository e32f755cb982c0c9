// npm start -- --fleet: three processes behind one address, as a person sees them.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { after, before, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { rules } from "../../js/demo/rules.mjs";
import { Browser } from "./browser.mjs";
import { Demo } from "./demo.mjs";

let browser;
before(async () => {
  browser = await Browser.open(["--fleet"]);
});
after(() => browser.close());

const NODES = [1, 2, 3];

test("shows all three nodes, one budget and one alarm", async (t) => {
  const shown = await browser.page(t);
  const nodes = shown.page.getByRole("region", { name: "Fleet" });
  const node = (number, says) =>
    nodes
      .getByRole("listitem")
      .filter({ hasText: `Node ${number}` })
      .filter({ hasText: says });
  for (const number of NODES) await node(number, "connected").waitFor();
  const { limit } = rules.order.limit;
  for (let sent = 1; sent <= NODES.length; sent += 1) {
    await shown.button("order", "Send one").click();
    await shown.left("order", limit - sent);
  }
  for (const number of NODES) await node(number, "1 handled").waitFor();
  await shown.button("order", "Burst").click();
  await shown.logged("order", "2 accepted", "8 refused", "RATE_LIMITED");

  await shown.button("chat", "Burst").click();
  const told = nodes.getByRole("alert").filter({ hasText: /^Alarm 1: .* by node [123]\.$/ });
  await told.waitFor();
  for (let more = 0; more < 2; more += 1) {
    await shown.button("chat", "Burst").click();
    await shown.logged("chat", "RATE_LIMITED");
  }
  await told.waitFor();
});

test("a message delivered to two nodes at once is handled once", async (t) => {
  const shown = await browser.page(t);
  await shown.page.getByText("Node 3").waitFor();
  await shown.button("order", "Send twice").click();
  await shown.logged("order", "delivered twice", "1 accepted", "1 duplicate");
});

/** The processes that one has started and that still run, each with its command. */
function startedBy(pid) {
  const { stdout } = spawnSync("ps", ["-A", "-o", "pid=,ppid=,args="], { encoding: "utf8" });
  return stdout
    .split("\n")
    .map((line) => /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line))
    .filter((found) => Number(found?.[2]) === pid)
    .map(([, child, , command]) => ({ pid: Number(child), command }));
}

function runs(pid) {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

test("whoever kills it leaves nothing behind", async () => {
  const demo = await Demo.listening(["--fleet"]);
  const started = startedBy(demo.pid);
  assert.equal(started.length, NODES.length + 1);
  assert.equal(started.filter(({ command }) => /(valkey|redis)-server/.test(command)).length, 1);
  assert.equal(await demo.end("SIGKILL"), "SIGKILL");
  while (started.some(({ pid }) => runs(pid))) await pause(10);
});

test("without a server on the machine, it says how to get one", async () => {
  const demo = new Demo(["--fleet", "--port", "0"], { PATH: "/nowhere" });
  assert.equal(await demo.end(), 1);
  assert.match(
    demo.output,
    /^tidegate demo: --fleet needs a Valkey or Redis server .*apt-get install valkey-server/s,
  );
});
