// The Worker as it was built, on a real workerd.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "../../js/tools/shell.mjs";
import { startWorker } from "../workerd.mjs";

export const TOKEN = "0123456789abcdef-all";
export const BOUND_TOKEN = "0123456789abcdef-app";
export const TOKENS = `${TOKEN},${BOUND_TOKEN}=app`;

const built = JSON.stringify(join(root, "target/worker/index.js"));

/** The Worker itself, and nothing else. */
const plain = `export { default, TidegateShard } from ${built};`;

/** The Worker with a clock that a test sets: /test/clock?at=1000. */
const clocked = `
  import { setClock } from "./clock.mjs";
  import Worker, { TidegateShard } from ${built};

  export { TidegateShard };
  export default {
    fetch(request, env, context) {
      const { pathname, searchParams } = new URL(request.url);
      if (pathname !== "/test/clock") return new Worker(context, env).fetch(request);
      setClock(Number(searchParams.get("at")));
      return new Response();
    },
  };
`;

/** A place for objects to keep their rows in, which outlives the Worker. */
export function makeDisk() {
  const path = mkdtempSync(join(tmpdir(), "tidegate-objects-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/**
 * Starts the Worker.
 *
 * @param options.env its settings; by default two tokens
 * @param options.disk where its objects keep their rows; by default a place that goes with it
 * @param options.clock whether a test says what time it is
 * @param options.source another module around it
 */
export async function serve(options = {}) {
  const {
    env = { TIDEGATE_TOKEN: TOKENS },
    clock = false,
    bindings = [],
    services = [],
    source,
  } = options;
  // SQLite is only where there is a disk.
  const disk = options.disk ?? makeDisk();
  const path = JSON.stringify(disk.path);
  const worker = await startWorker(source ?? (clock ? clocked : plain), import.meta.dirname, {
    env,
    date: "2026-11-01",
    services: [`(name = "disk", disk = (path = ${path}, writable = true))`, ...services],
    bindings: ['(name = "TIDEGATE_SHARD", durableObjectNamespace = "TidegateShard")', ...bindings],
    config: `durableObjectNamespaces = [(className = "TidegateShard", uniqueKey = "tidegate", enableSql = true)], durableObjectStorage = (localDisk = "disk")`,
  });
  const stop = worker.stop;
  return Object.assign(worker, {
    async stop() {
      await stop();
      if (!options.disk) disk.remove();
    },
    call: (path, body, token = TOKEN) => call(worker.url, path, body, token),
    ok: async (path, body, token = TOKEN) => {
      const answer = await call(worker.url, path, body, token);
      assert.equal(answer.status, 200, JSON.stringify(answer.body));
      return answer.body;
    },
    setClock: (at) => fetch(`${worker.url}/test/clock?at=${at}`),
  });
}

async function call(url, path, body, token) {
  const response = await fetch(`${url}/v1/${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: await response.json() };
}
