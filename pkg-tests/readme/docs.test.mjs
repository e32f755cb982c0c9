// Runs every snippet of the documents, and compares what it prints.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { respond, TOKEN } from "../redis-rest/proxy.mjs";
import { serve } from "../redis-rest/served.mjs";
import { prints, snippetsOf } from "./snippets.mjs";

/** Upstash's own scripts have a flag that its servers alone know; here they run without. */
async function ours(received, serve, response) {
  received.body = String(received.body).replace("#!lua flags=allow-key-locking\\n", "");
  respond(response, ...(await serve()));
}

const isAlone = ({ name }) => name.startsWith("snippet");

for (const [document, least] of [
  ["recipes", 6],
  ["migrating", 8],
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
