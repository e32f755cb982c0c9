import type { Claim, Deduplicator } from "../deduplicator.js";
import { fields, refused, same, Unexpected, within } from "./expect.js";
import { type Case, ends, type Trial } from "./trial.js";

/** What remembers ids owes, whatever the clock does. */
export const messageCases: readonly Case[] = [
  { name: "an id is first once", needs: [], body: firstOnce },
  {
    name: "an absent id is not known, and looking leaves it absent",
    needs: ["records"],
    body: absentId,
  },
  { name: "a forgotten id is first again", needs: ["records"], body: forgets },
  { name: "a claimed id is in progress for everybody else", needs: ["records"], body: inProgress },
  { name: "a committed id is a duplicate with its result", needs: ["records"], body: committed },
  { name: "a released id has not been seen", needs: ["records"], body: released },
  {
    name: "after first, a claim is a duplicate without a result",
    needs: ["records"],
    body: firstThenClaim,
  },
  { name: "the same id with another payload is a mismatch", needs: ["records"], body: mismatch },
  {
    name: "a result comes back as it was, whatever is in it",
    needs: ["records"],
    body: oddResults,
  },
  {
    name: "a result of 64 KiB is kept, a larger one refused",
    needs: ["records"],
    body: largeResults,
  },
  { name: "run does the work once", needs: ["records"], body: runsOnce },
  {
    name: "work that fails is released, and its error is the caller's",
    needs: ["records"],
    body: runFails,
  },
  { name: "whoever waits in run gets the result", needs: ["exact", "records"], body: runWaits },
];

/** Whoever runs work waits for as long as somebody else seems to be at it, which here is never long. */
const RUN_MS = 4_000;

/** A claim that has to be fresh. */
export async function fresh(
  ids: Deduplicator,
  id: string,
  what: string,
): Promise<Extract<Claim, { status: "fresh" }>> {
  const claim = await ids.claim(id);
  if (claim.status !== "fresh") throw new Unexpected(what, "a fresh claim", claim);
  return claim;
}

async function firstOnce(trial: Trial): Promise<void> {
  const ids = trial.deduplicator();
  same(await ids.first("id"), true, "the first first");
  same(await ids.first("id"), false, "the second first");
  same(await ids.first("id"), false, "the third first");
  same(await ids.first("other"), true, "first of another id");
  same(await trial.deduplicator().first("id"), false, "first at another deduplicator");
}

async function absentId(trial: Trial): Promise<void> {
  const ids = trial.deduplicator();
  same(await ids.has("id"), false, "has of an absent id");
  await ids.forget("id");
  same(await ids.has("id"), false, "has again");
  same(await ids.first("id"), true, "first after has");
  same(await ids.has("id"), true, "has after first");
}

async function forgets(trial: Trial): Promise<void> {
  const ids = trial.deduplicator();
  for (const id of ["id", "id:1", "other"]) await ids.first(id);
  await ids.forget("id");
  same(await ids.has("id"), false, "has after forget");
  same(await ids.has("id:1"), true, "has of a longer id after forget");
  same(await ids.first("id"), true, "first after forget");
  same(await ids.first("other"), false, "first of another id after forget");
}

async function inProgress(trial: Trial): Promise<void> {
  const ids = trial.deduplicator();
  const claim = await fresh(ids, "id", "the first claim");
  for (const other of [ids, trial.deduplicator()]) {
    const second = await other.claim("id");
    if (second.status !== "in-progress") {
      throw new Unexpected("a claim of a claimed id", '"in-progress"', second);
    }
    within(second.retryAfterMs, 1, trial.longMs, "retryAfterMs of a claimed id");
    same(await other.first("id"), false, "first of a claimed id");
    same(await other.has("id"), false, "has of a claimed id");
  }
  same(await claim.commit(), true, "the commit after others asked");
}

async function committed(trial: Trial): Promise<void> {
  const ids = trial.deduplicator();
  const claim = await fresh(ids, "id", "the first claim");
  same(await claim.commit({ receipt: 7 }), true, "the commit");
  same(await claim.commit({ receipt: 7 }), true, "the same commit, after a lost reply");
  same(await claim.release(), false, "a release after the commit");
  for (const other of [ids, trial.deduplicator()]) {
    const duplicate = await other.claim("id");
    same(duplicate, { status: "duplicate", result: { receipt: 7 } }, "a claim of a committed id");
    same(await other.has("id"), true, "has of a committed id");
    same(await other.first("id"), false, "first of a committed id");
  }
}

async function released(trial: Trial): Promise<void> {
  const ids = trial.deduplicator();
  const claim = await fresh(ids, "id", "the first claim");
  same(await claim.release(), true, "the release");
  same(await ids.has("id"), false, "has of a released id");
  const next = await fresh(ids, "id", "a claim of a released id");
  same(await claim.commit("late"), false, "a commit after release, when another has claimed");
  same(await claim.release(), false, "a release after release, when another has claimed");
  same(await next.commit("done"), true, "the other's commit");
  same(await ids.claim("id"), { status: "duplicate", result: "done" }, "a claim after that");
}

async function firstThenClaim(trial: Trial): Promise<void> {
  const ids = trial.deduplicator();
  await ids.first("id");
  same(await ids.claim("id"), { status: "duplicate", result: undefined }, "a claim after first");
}

async function mismatch(trial: Trial): Promise<void> {
  const ids = trial.deduplicator();
  const claim = await ids.claim("id", { payload: "one\ud800" });
  same(claim.status, "fresh", "the first claim's status");
  const other = { payload: "one\ud801" };
  const its = { payload: "one\ud800" };
  same((await ids.claim("id", other)).status, "mismatch", "another payload while it is claimed");
  same((await ids.claim("id", its)).status, "in-progress", "its payload while it is claimed");
  same((await ids.claim("id")).status, "in-progress", "no payload while it is claimed");
  if (claim.status === "fresh") await claim.commit("done");
  same((await ids.claim("id", other)).status, "mismatch", "another payload when it is done");
  same((await ids.claim("id", its)).status, "duplicate", "its payload when it is done");
  same((await ids.claim("id")).status, "duplicate", "no payload when it is done");
  await refused(() => ids.run("id", () => "work", other), "mismatch", "run with another payload");

  const bytes = await ids.claim("bytes", { payload: Uint8Array.of(0, 255) });
  same(bytes.status, "fresh", "a claim with bytes");
  const others = { payload: Uint8Array.of(0, 254) };
  same((await ids.claim("bytes", others)).status, "mismatch", "a claim with other bytes");
}

async function oddResults(trial: Trial): Promise<void> {
  const ids = trial.deduplicator();
  const results: unknown[] = [
    null,
    true,
    false,
    0,
    -1.5,
    1e21,
    Number.MAX_SAFE_INTEGER,
    "",
    " ",
    "undefined",
    "null",
    [],
    {},
    [null, [["deep"]], { a: { b: [1, "2", null] } }],
    "quotes \" ' ` and \\ \\u0000 \\\\",
    "\0\u0001\b\t\n\v\f\r\u001b\u007f\u0080\u009f\u00a0",
    "caf\u00e9 \u00df \u0130 \u4e2d\u6587 \u0639 \u05d0",
    "\u2028\u2029\u200b\ufeff\ufffe\uffff\ufffd",
    "\ud800 and \udc00 without a partner, \u{1f30a} with one",
    ": | ; , = % $ # & * ? [ ] { } < > ~ ^",
    "'); drop table records; --",
    { "": "no name", "a:b": 1, "\ud800": 2, "\u00e9": 3 },
  ];
  for (const [at, result] of results.entries()) {
    const what = `result ${at}`;
    const claim = await fresh(ids, what, what);
    same(await claim.commit(result), true, `the commit of ${what}`);
    same(await ids.claim(what), { status: "duplicate", result }, what);
  }
  const nothing = await fresh(ids, "nothing", "a claim");
  same(await nothing.commit(), true, "a commit without a result");
  same(await ids.claim("nothing"), { status: "duplicate", result: undefined }, "no result");
}

/** A text that is so many bytes of JSON. */
const jsonOf = (bytes: number) => "x".repeat(bytes - 2);

async function largeResults(trial: Trial): Promise<void> {
  const ids = trial.deduplicator();
  const most = 64 * 1024;
  // A letter outside ASCII is two bytes, and six characters of what is stored.
  const wide = "\u00e9".repeat((most - 2) / 2);
  for (const [id, result] of Object.entries({ plain: jsonOf(most), wide })) {
    const claim = await fresh(ids, id, "a claim");
    same(await claim.commit(result), true, "the commit of a result of 64 KiB");
    same(await ids.claim(id), { status: "duplicate", result }, "a result of 64 KiB");
  }
  const claim = await fresh(ids, "above", "a claim");
  await refused(() => claim.commit(jsonOf(most + 1)), "bad_argument", "a result above 64 KiB");
  await refused(() => claim.commit(1n), "bad_argument", "a result that JSON does not know");
  await refused(() => claim.commit(() => 1), "bad_argument", "a function for a result");
  same((await ids.claim("above")).status, "in-progress", "the status after refused commits");
  same(await claim.commit("smaller"), true, "the commit of a smaller result");
}

async function runsOnce(trial: Trial): Promise<void> {
  const ids = trial.deduplicator();
  let runs = 0;
  const run = (id: string) =>
    ends(
      ids.run(id, () => ({ run: ++runs })),
      RUN_MS,
      "run",
    );
  same(await run("id"), { run: 1 }, "the first run");
  same(await run("id"), { run: 1 }, "the second run");
  same(await run("other"), { run: 2 }, "a run of another id");
  same(runs, 2, "how often the work ran");
}

async function runFails(trial: Trial): Promise<void> {
  const ids = trial.deduplicator();
  const failure = new Error("the work failed");
  const failing = ids.run("id", () => {
    throw failure;
  });
  const error = await failing.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error !== failure) throw new Unexpected("run of work that fails", "the work's error", error);
  same(await ids.has("id"), false, "has after work that failed");
  const next = ids.run("id", () => "done");
  same(await ends(next, RUN_MS, "the next run"), "done", "the next run");
}

async function runWaits(trial: Trial): Promise<void> {
  const ids = trial.deduplicator();
  let start = (): void => {};
  let finish = (): void => {};
  const started = new Promise<void>((resolve) => {
    start = resolve;
  });
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  let runs = 0;
  const work = async () => {
    runs += 1;
    start();
    await finished;
    return "done";
  };
  const waiting = [ids.run("id", work), ids.run("id", work), ids.run("id", work)];
  await Promise.race([started, ...waiting]);
  fields(await ids.claim("id"), { status: "in-progress" }, "a claim while the work runs");
  finish();
  const answers = await ends(Promise.all(waiting), RUN_MS, "a run that waits");
  same(answers, ["done", "done", "done"], "what the runs answer");
  same(runs, 1, "how often the work ran");
}
