// The document that the Worker serves, and the Worker as the document says: thousands of calls that follow it, and that
// break it, made by a program that knows only the document.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { schemathesisCommand } from "../../js/tools/setup.mjs";
import { attempt } from "../../js/tools/shell.mjs";
import { serve, TOKEN } from "./served.mjs";

let worker;

before(async () => {
  worker = await serve();
});

after(() => worker.stop());

for (const phase of [
  ["--phases", "coverage"],
  ["--phases", "fuzzing", "--max-examples", "8"],
]) {
  test(`the API is what its document says: ${phase[1]}`, async () => {
    const args = [
      ...["run", `${worker.url}/openapi.json`, "--header", `Authorization: Bearer ${TOKEN}`],
      // What the fields must be together (a burst that fits its limit) is more than a schema can say.
      ...["--checks", "all", "--exclude-checks", "positive_data_acceptance"],
      ...["--seed", "1", "--no-color", ...phase],
    ];
    // It keeps notes where it is.
    const cwd = mkdtempSync(join(tmpdir(), "tidegate-schemathesis-"));
    const { code, output } = await attempt(schemathesisCommand(), args, { cwd });
    rmSync(cwd, { recursive: true });
    assert.equal(code, 0, output);
    assert.match(output, /Selected: 19\/19/);
  });
}

test("every call of the document is there, and every error has its shape", async () => {
  const document = await (await fetch(`${worker.url}/openapi.json`)).json();
  const { code } = document.components.schemas.Error.properties.error.properties;
  for (const [path, { post }] of Object.entries(document.paths).filter(([, { post }]) => post)) {
    const { status, body } = await worker.call(path.replace("/v1/", ""), {});
    const takesJson = "application/json" in post.requestBody.content;
    assert.equal(status, takesJson ? 400 : 415, path);
    assert.ok(code.enum.includes(body.error.code));
    assert.equal(post.operationId, path.slice(4));
  }
});
