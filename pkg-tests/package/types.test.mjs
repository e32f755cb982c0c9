import { test } from "node:test";
import { project, typecheck, use } from "./project.mjs";

const esm = `import { Limiter } from "tidegate";${use.replace("answers = []", "answers: boolean[] = []")}`;
const wrong = `import { Limiter } from "tidegate";
// @ts-expect-error the window is missing
new Limiter({ limit: { limit: 1 } });
`;

const settings = {
  // Only Node's later mode knows that CommonJS may require() a module.
  node16: { module: "node16", files: ["main.mts"] },
  nodenext: { module: "nodenext", files: ["main.mts", "main.cts"] },
  bundler: { module: "esnext", moduleResolution: "bundler", files: ["main.ts"] },
};

for (const [name, { files, ...module }] of Object.entries(settings)) {
  test(`strict TypeScript, module ${name}`, (t) => {
    const compilerOptions = {
      ...module,
      strict: true,
      skipLibCheck: false,
      noEmit: true,
      target: "es2022",
      lib: ["es2022", "dom"],
      types: [],
    };
    const path = project(t, {
      ...Object.fromEntries(files.map((file) => [file, esm])),
      "wrong.mts": wrong,
      "tsconfig.json": JSON.stringify({ compilerOptions, files: [...files, "wrong.mts"] }),
    });
    typecheck(path);
  });
}
