// A Worker with both shard classes, the Rust Worker's and the package's, on a real workerd.

import { join } from "node:path";
import { root } from "../../js/tools/shell.mjs";
import { makeDisk } from "../worker/served.mjs";
import { startWorker } from "../workerd.mjs";

const built = JSON.stringify(join(root, "target/worker/index.js"));

const source = `
  import "../worker/clock.mjs";
  import { TidegateShard as RustShard } from ${built};
  import { TidegateShard } from "tidegate/cloudflare";
  import { answer } from "./program.mjs";
  import { watched } from "./watched.mjs";

  export const JavaScript = watched(TidegateShard);
  export const Rust = watched(RustShard);
  export default { fetch: answer };
`;

/**
 * Starts it.
 *
 * @param options.namespaces the class that each binding is for: "JavaScript" or "Rust"
 * @param options.disk where objects keep their rows; by default a place that goes with it
 * @param options.env the texts in its environment
 */
export async function serve(options = {}) {
  const { namespaces = { JS: "JavaScript", RUST: "Rust" }, env = {} } = options;
  const disk = options.disk ?? makeDisk();
  const names = Object.entries(namespaces);
  const bindings = names.map(
    ([name, of]) => `(name = "${name}", durableObjectNamespace = "${of}")`,
  );
  const classes = names.map(
    ([name, of]) => `(className = "${of}", uniqueKey = "${name}", enableSql = true)`,
  );
  const worker = await startWorker(source, import.meta.dirname, {
    env,
    bindings,
    services: [`(name = "disk", disk = (path = ${JSON.stringify(disk.path)}, writable = true))`],
    config: `durableObjectNamespaces = [${classes.join()}], durableObjectStorage = (localDisk = "disk")`,
  });
  const { stop } = worker;
  return Object.assign(worker, {
    async stop() {
      await stop();
      if (!options.disk) disk.remove();
    },
    async ask(namespace, task, body = {}) {
      const url = `${worker.url}/${task}?namespace=${namespace}`;
      const response = await fetch(url, { method: "POST", body: JSON.stringify(body) });
      return response.json();
    },
  });
}

export const admitted = (answers) => answers.filter(({ allowed }) => allowed).length;

export const many = (count, ask) => Promise.all(Array.from({ length: count }, ask));
