// How long programs and Workers take to start, in turns, each time in a process of its own: medians of milliseconds, on
// the clock and of the processor. Ratios are of the processor's time, to tidegate; those of Workers are of what they take
// more than an empty one.

import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { run } from "../../js/tools/shell.mjs";
import { buildWorker, runWorker } from "../workerd.mjs";
import { imports } from "./imports.mjs";
import { median } from "./measure.mjs";

const ROUNDS = 9;
const here = import.meta.dirname;

const answering = (body, top = "") => `${top}
  export default { fetch: async () => Response.json(${body}) };
`;
const tidegate = `
  import { Limiter } from "tidegate";
  const limiter = new Limiter({ limit: { limit: 10, window: "1m" } });
`;
const upstash = `
  import { Ratelimit } from "@upstash/ratelimit";
  import { Redis } from "@upstash/redis/cloudflare";
  const redis = new Redis({ url: "https://localhost", token: "any" });
  const limiter = new Ratelimit({ redis, limiter: Ratelimit.slidingWindow(10, "1m") });
`;
/** The first is what the others are compared with. A decision of Upstash's would need its server. */
const workers = {
  "an empty Worker": answering("true"),
  "tidegate, a limiter made": answering("Boolean(limiter)", tidegate),
  "tidegate, its first decision": answering('(await limiter.consume("key")).allowed', tidegate),
  "@upstash/ratelimit, a limiter made": answering("Boolean(limiter)", upstash),
};

/** Calls each in turn, and answers the medians of every figure. */
async function inTurns(measures) {
  const rounds = measures.map(() => []);
  // The first round warms up what all of them read.
  for (let round = 0; round <= ROUNDS; round += 1) {
    for (const [index, measure] of measures.entries()) {
      const figures = await measure();
      if (round > 0) rounds[index].push(figures);
    }
  }
  return rounds.map((figures) =>
    Object.fromEntries(
      Object.keys(figures[0]).map((name) => [name, median(figures.map((each) => each[name]))]),
    ),
  );
}

async function importOf(name) {
  const output = await run(process.execPath, [join(here, "imports.mjs"), name]);
  const { imported, decided } = JSON.parse(output);
  return { ...imported, ...(decided && { decidedWall: decided.wall, decidedCpu: decided.cpu }) };
}

async function coldStart(directory) {
  const start = performance.now();
  const worker = await runWorker(directory);
  try {
    const answer = await (await fetch(worker.url)).json();
    if (answer !== true) throw new Error(`a Worker answered ${answer}`);
    return { wall: performance.now() - start, cpu: processorMs(worker.pid) };
  } finally {
    await worker.stop();
  }
}

/** What the threads of a process have used, as Linux counts it. */
function processorMs(pid) {
  const tasks = `/proc/${pid}/task`;
  const nanoseconds = readdirSync(tasks).map((task) =>
    Number(readFileSync(join(tasks, task, "schedstat"), "utf8").split(" ")[0]),
  );
  return nanoseconds.reduce((sum, each) => sum + each, 0) / 1e6;
}

const column = (figures, names, name) =>
  figures
    .map((figure, at) => ({ who: names[at], value: figure[name] }))
    .filter(({ value }) => value);

async function ofPrograms() {
  const names = Object.keys(imports);
  const figures = await inTurns(names.map((name) => () => importOf(name)));
  return [
    { what: "import in Node.js", figures: column(figures, names, "wall") },
    { what: "import in Node.js, processor", figures: column(figures, names, "cpu") },
    {
      what: "import in Node.js and a first decision, processor",
      figures: column(figures, names, "decidedCpu"),
    },
  ];
}

/** What Workers take more than an empty one. */
async function ofWorkers() {
  const directories = [];
  for (const source of Object.values(workers)) directories.push(await buildWorker(source, here));
  const [empty, ...figures] = await inTurns(directories.map((each) => () => coldStart(each)));
  for (const directory of directories) rmSync(directory, { recursive: true });
  const more = figures.map(({ wall, cpu }) => ({ wall: wall - empty.wall, cpu: cpu - empty.cpu }));
  const names = Object.keys(workers).slice(1);
  return [
    {
      what: "cold start in workerd, more than an empty Worker",
      figures: column(more, names, "wall"),
    },
    {
      what: "cold start in workerd, more than an empty Worker, processor",
      figures: column(more, names, "cpu"),
    },
  ];
}

console.log(JSON.stringify([...(await ofPrograms()), ...(await ofWorkers())]));
