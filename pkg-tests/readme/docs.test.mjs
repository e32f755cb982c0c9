// Runs every snippet of the documents, and compares what it prints.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { attempt } from "../../js/tools/shell.mjs";
import {
  databaseDirectory,
  openPostgres,
  remove,
  startPostgres,
} from "../conformance/databases.mjs";
import { respond, TOKEN } from "../redis-rest/proxy.mjs";
import { serve } from "../redis-rest/served.mjs";
import { documentOf, filesOf, prints, snippetsOf } from "./snippets.mjs";

/** Upstash's own scripts have a flag that its servers alone know; here they run without. */
async function ours(received, serve, response) {
  received.body = String(received.body).replace("#!lua flags=allow-key-locking\\n", "");
  respond(response, ...(await serve()));
}

const isAlone = ({ name }) => name.startsWith("snippet");

for (const [document, least] of [
  ["recipes", 6],
  ["migrating", 8],
  ["extending", 1],
]) {
  describe(document, () => {
    const snippets = snippetsOf(`js/docs/${document}.md`);
    assert.ok(snippets.length >= least);
    for (const snippet of snippets.filter(isAlone)) test(snippet.name, () => prints(snippet));
    for (const snippet of snippets.filter((one) => !isAlone(one))) {
      test(snippet.name, async () => {
        const served = await serve();
        served.proxy.fault = ours;
        const env = { UPSTASH_REDIS_REST_URL: served.proxy.url, UPSTASH_REDIS_REST_TOKEN: TOKEN };
        try {
          await prints(snippet, env);
        } finally {
          await served.stop();
        }
      });
    }
  });
}

test("a store of one's own: the three files as they stand, on a real server", async (t) => {
  const directory = databaseDirectory();
  t.after(() => remove(directory));
  const server = await startPostgres(directory);
  t.after(() => server.stop());
  const pool = openPostgres(directory);
  const table = /create table tidegate \(.*\)/.exec(documentOf("js/docs/stores.md"))[0];
  await pool.query(table);
  await pool.end();

  const env = { PGHOST: directory, PGUSER: "postgres", PGDATABASE: "postgres" };
  const [store, limit, suite] = filesOf("js/docs/stores.md");
  assert.ok(store.code.split("\n").length <= 41, "a store is 40 lines");
  await prints(limit, env);
  // Of the long races one is enough: the suite's own tests have them all, on the same statements.
  const args = ["--test", "--test-name-pattern=/^(?!.*50)|on one id/", suite.path];
  const { code, output } = await attempt(process.execPath, args, {
    env: { ...env, NODE_TEST_CONTEXT: undefined },
  });
  assert.equal(code, 0, output);
  assert.match(output, /^(# |ℹ )pass [1-9]\d+$/m);
});
