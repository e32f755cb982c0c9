import assert from "node:assert/strict";
import { test } from "node:test";
import { execute, project, typecheck, use, works } from "./project.mjs";

// The narrowest world that a user may have: nothing of the DOM, of Node, or of a later standard.
const strict = { strict: true, skipLibCheck: false, target: "es2022", lib: ["es2022"], types: [] };

const right = `import { Limiter } from "tidegate";
import type { KvStore } from "tidegate/cloudflare";
import type { expressLimit, limitFetch } from "tidegate/http";
import type { instrument } from "tidegate/opentelemetry";
import type { RedisRestStore } from "tidegate/redis-rest";
import type { Gateway } from "tidegate/socket.io";
export type Mine = Gateway | KvStore | RedisRestStore;
export type Functions = typeof expressLimit | typeof limitFetch | typeof instrument;
declare const console: { log(text: string): void };
${use.replace("answers = []", "answers: boolean[] = []")}`;
const wrong = `import { Limiter } from "tidegate";
// @ts-expect-error the window is missing
new Limiter({ limit: { limit: 1 } });
`;

const settings = {
  // Only Node's later mode knows that CommonJS may require() a module.
  node16: { module: "node16", files: ["main.mts"] },
  nodenext: { module: "nodenext", files: ["main.mts", "main.cts"] },
  bundler: { module: "esnext", moduleResolution: "bundler", files: ["main.mts"] },
};

for (const [name, { files, ...module }] of Object.entries(settings)) {
  test(`strict TypeScript, module ${name}`, (t) => {
    const compilerOptions = { ...strict, ...module, rootDir: ".", outDir: "out" };
    const path = project(t, {
      ...Object.fromEntries(files.map((file) => [file, right])),
      "wrong.mts": wrong,
      "tsconfig.json": JSON.stringify({ compilerOptions, files: [...files, "wrong.mts"] }),
    });
    typecheck(path);
    for (const file of files) {
      const emitted = `out/${file.replace("ts", "js")}`;
      assert.equal(execute(process.execPath, ["--no-warnings", emitted], path).trim(), works);
    }
  });
}
