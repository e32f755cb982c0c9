import { insideWindow } from "./bursts.js";
import { same, tally } from "./expect.js";
import { ALGORITHMS, CAPACITY } from "./limits.js";
import { type Case, type Need, type Trial, together } from "./trial.js";

const NEEDS: readonly Need[] = ["exact", "records"];
const MANY = 50;

/** Whatever is asked at the same time has as many winners as one after the other. */
export const raceCases: readonly Case[] = [
  {
    name: "50 at once on a fixed window: the limit is admitted",
    needs: ["exact"],
    body: fixedWindow,
  },
  { name: "50 at once on one id: one is first", needs: ["exact"], body: firsts },
  ...ALGORITHMS.map(({ title, limit }) => ({
    name: `${title}: of 50 at once, the limit is admitted`,
    needs: NEEDS,
    body: (trial: Trial) => consumes(trial, limit),
  })),
  { name: "several limits at once: all are charged alike", needs: NEEDS, body: several },
  { name: "costs at once never add up to more than the limit", needs: NEEDS, body: costs },
  { name: "refunds at once are all given", needs: NEEDS, body: refunds },
  { name: "50 claims at once: one is fresh", needs: NEEDS, body: claims },
  { name: "50 takeovers of a released id: one is fresh", needs: NEEDS, body: takeovers },
  { name: "50 observations at once: one fires, each is counted", needs: NEEDS, body: observations },
];

async function fixedWindow(trial: Trial): Promise<void> {
  await consumes(trial, { algorithm: "fixed-window", limit: CAPACITY });
}

async function consumes(trial: Trial, limit: (typeof ALGORITHMS)[number]["limit"]): Promise<void> {
  const limiter = trial.limiter({ ...limit, window: trial.longMs });
  const answers = await together(MANY, () => limiter.consume("key"));
  const expected = { false: MANY - CAPACITY, true: CAPACITY };
  same(tally(answers.map(({ allowed }) => allowed)), expected, "how many are admitted");
  const left = answers.filter(({ allowed }) => allowed).map(({ remaining }) => remaining);
  same(left.sort().reverse(), [4, 3, 2, 1, 0], "what remains after each that is admitted");
}

async function firsts(trial: Trial): Promise<void> {
  const ids = trial.deduplicator();
  const answers = await together(MANY, () => ids.first("id"));
  same(tally(answers), { false: MANY - 1, true: 1 }, "how many are first");
}

async function several(trial: Trial): Promise<void> {
  const window = trial.longMs;
  const small = { name: "small", limit: 7, window };
  const large = { name: "large", algorithm: "fixed-window", limit: 30, window } as const;
  const limiter = trial.limiter([small, large]);
  const answers = await together(MANY, () => limiter.consume("key"));
  same(
    tally(answers.map(({ allowed }) => allowed)),
    { false: 43, true: 7 },
    "how many are admitted",
  );
  same((await trial.limiter(large).peek("key")).remaining, 23, "what the other limit has left");
}

async function costs(trial: Trial): Promise<void> {
  const limiter = trial.limiter({ limit: 40, window: trial.longMs });
  const answers = await together(20, async (at) => {
    const cost = 1 + (at % 5);
    return (await limiter.consume("key", { cost })).allowed ? cost : 0;
  });
  const admitted = answers.reduce((sum, cost) => sum + cost, 0);
  same(
    (await limiter.peek("key")).remaining,
    40 - admitted,
    "what is left after the costs admitted",
  );
  same(admitted >= 36, true, "that what is left is less than the largest cost");
}

async function refunds(trial: Trial): Promise<void> {
  const limiter = trial.limiter({ limit: 100, window: trial.longMs });
  await limiter.consume("key", { cost: 60 });
  await together(20, () => limiter.refund("key", 2));
  same((await limiter.peek("key")).remaining, 80, "remaining after 20 refunds of 2 at once");
}

async function claims(trial: Trial): Promise<void> {
  const ids = trial.deduplicator();
  const answers = await together(MANY, () => ids.claim("id"));
  const statuses = tally(answers.map(({ status }) => status));
  same(statuses, { fresh: 1, "in-progress": MANY - 1 }, "what the claims are");
  const commits = answers.flatMap((claim) =>
    claim.status === "fresh" ? [claim.commit("it")] : [],
  );
  same(await Promise.all(commits), [true], "the commit of the one that is fresh");
  same(await ids.claim("id"), { status: "duplicate", result: "it" }, "a claim after that");
}

async function takeovers(trial: Trial): Promise<void> {
  const ids = trial.deduplicator();
  const claim = await ids.claim("id");
  if (claim.status === "fresh") await claim.release();
  const answers = await together(MANY, () => ids.claim("id"));
  const statuses = tally(answers.map(({ status }) => status));
  same(statuses, { fresh: 1, "in-progress": MANY - 1 }, "what the claims are");
}

async function observations(trial: Trial): Promise<void> {
  const detector = await insideWindow(trial, { threshold: 20 });
  const answers = await together(MANY, () => detector.observe("identity"));
  const counts = answers.map(({ count }) => count).sort((a, b) => a - b);
  same(
    counts,
    Array.from({ length: MANY }, (_, at) => at + 1),
    "the counts",
  );
  const fired = answers.filter((observation) => observation.fired).map(({ count }) => count);
  same(fired, [20], "the counts of those that fired");
}
