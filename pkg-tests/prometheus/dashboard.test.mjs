// The dashboard's queries and the alerts', on a real Prometheus that watches a real gateway.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { Limiter, MemoryStore, metrics, storeFrom } from "tidegate";
import { attempt } from "../../js/tools/shell.mjs";
import { start } from "../gateway/harness.mjs";
import { listening } from "../http/hosts.mjs";
import { freePort } from "../redis/servers.mjs";

const docs = join(import.meta.dirname, "../../js/docs");
const dashboard = JSON.parse(readFileSync(join(docs, "grafana-dashboard.json"), "utf8"));
const targets = dashboard.panels.flatMap(({ title, targets }) =>
  targets.map(({ expr }) => ({ title, expr: expr.replaceAll("$__rate_interval", "10s") })),
);

const operations = readFileSync(join(docs, "operations.md"), "utf8");
const rules = /```yaml\n(.*?)```/s.exec(operations)[1];
/** The alerts' left sides, which have to find something before they can be too much of it. */
const alerts = [...rules.matchAll(/expr: (.*) > [\d.]+$/gm)].map(([, expr]) => ({
  title: `alert ${expr}`,
  expr: expr.replaceAll("5m", "10s"),
}));

/** A Prometheus that asks this address for metrics, several times a second. */
async function watching(t, target) {
  const directory = mkdtempSync(join(tmpdir(), "tidegate-prometheus-"));
  const config = {
    global: { scrape_interval: "250ms", scrape_timeout: "250ms" },
    scrape_configs: [{ job_name: "gateway", static_configs: [{ targets: [target] }] }],
  };
  // JSON is YAML.
  writeFileSync(join(directory, "prometheus.yml"), JSON.stringify(config));
  const port = await freePort();
  const child = spawn(
    "prometheus",
    [
      `--config.file=${directory}/prometheus.yml`,
      `--storage.tsdb.path=${directory}/data`,
      `--web.listen-address=127.0.0.1:${port}`,
      "--log.level=error",
    ],
    { stdio: "ignore" },
  );
  t.after(async () => {
    child.kill("SIGKILL");
    await once(child, "close");
    rmSync(directory, { recursive: true, force: true });
  });
  return async (query) => {
    const parameters = new URLSearchParams({ query });
    const response = await fetch(`http://127.0.0.1:${port}/api/v1/query?${parameters}`).catch(
      () => undefined,
    );
    const { status, error, data } = (await response?.json()) ?? {};
    assert.notEqual(status, "error", `${query}: ${error}`);
    return (data?.result ?? []).map(({ metric, value }) => [metric, Number(value[1])]);
  };
}

/** Everything that a gateway meets, a little of each. */
async function traffic(t) {
  const limit = { name: "chat", limit: 1, window: "1h" };
  const { connect } = await start(
    t,
    {
      events: { chat: { limit }, order: { dedup: { ttl: "1h" } } },
      burst: { threshold: 2, window: 50, onBurst() {} },
    },
    {
      onConnection: (socket) => {
        socket.on("chat", (acknowledge) => acknowledge({ ok: true }));
        socket.on("order", (_order, acknowledge) => acknowledge({ ok: true }));
      },
    },
  );
  const client = await connect();
  const broken = storeFrom({ get: () => Promise.reject(new Error("down")), compareAndSet() {} });
  const away = new Limiter({ limit, store: broken, onStoreError: "allow" });
  const full = new Limiter({
    limit: { name: "short", limit: 1, window: 1 },
    store: new MemoryStore({ maxKeys: 2 }),
  });
  let key = 0;
  return async () => {
    await client.emitWithAck("chat");
    await client.emitWithAck("order", { mid: "m-1" });
    await away.consume("key");
    for (let more = 0; more < 5; more += 1) full.consumeSync(`key ${key++}`);
  };
}

test("the alerts' rules are rules", async () => {
  const directory = mkdtempSync(join(tmpdir(), "tidegate-rules-"));
  writeFileSync(join(directory, "rules.yml"), rules);
  const { code, output } = await attempt("promtool", ["check", "rules", `${directory}/rules.yml`]);
  rmSync(directory, { recursive: true });
  assert.equal(code, 0, output);
  assert.match(output, /SUCCESS: 4 rules found/);
});

test("every query of the dashboard, and every alert's, finds what happens", async (t) => {
  assert.ok(targets.length >= 8 && alerts.length === 4);
  const served = createServer((_, response) => response.end(metrics()));
  const query = await watching(t, new URL(await listening(t, served)).host);
  const work = await traffic(t);
  const silent = new Map([...targets, ...alerts].map(({ title, expr }) => [expr, title]));
  // Prometheus takes some seconds before it asks for the first time.
  for (const end = Date.now() + 18_000; silent.size > 0 && Date.now() < end; ) {
    await work();
    await pause(100);
    for (const expr of silent.keys()) {
      const found = await query(expr);
      if (found.some(([, value]) => value > 0)) silent.delete(expr);
    }
  }
  assert.deepEqual([...silent.values()], [], "these panels stay empty");
  const denied = await query('sum by (limit) (tidegate_decisions_total{reason="limited"})');
  assert.ok(denied.some(([{ limit }]) => limit === "chat"));
});
