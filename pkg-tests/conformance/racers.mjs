// Several processes on one store, and what they owe: as many winners as if they had asked in turn.

import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { after, before, test } from "node:test";

const processes = 4;

/** Registers the races on the store of that kind, at a place that is known when the tests run. */
export function raceTests(kind, place) {
  let racers;

  before(async () => {
    const program = join(import.meta.dirname, "racer.mjs");
    racers = Array.from({ length: processes }, () => fork(program, [kind, place()]));
    await Promise.all(racers.map((racer) => once(racer, "message")));
  });

  after(async () => {
    await Promise.all(
      racers.map((racer) => {
        racer.send({ race: "close" });
        return once(racer, "exit");
      }),
    );
  });

  /** What each process answers when all are asked at once. */
  async function ask(question) {
    const answers = racers.map((racer) => once(racer, "message"));
    for (const racer of racers) racer.send(question);
    return (await Promise.all(answers)).map(([{ answer }]) => answer);
  }

  const numbers = (count) => Array.from({ length: count }, (_, at) => at);
  const sorted = (lists) => lists.flat().sort((a, b) => a - b);

  const algorithms = ["leaky-bucket", "fixed-window", "sliding-window"];
  for (const algorithm of algorithms) {
    test(`${processes} processes: of 60 calls on a ${algorithm} of 20, 20 are admitted`, async () => {
      const limit = { name: algorithm, algorithm, limit: 20 };
      const admitted = await ask({ race: "consume", limit, calls: 15 });
      assert.equal(
        admitted.reduce((sum, count) => sum + count),
        20,
      );
    });
  }

  test(`${processes} processes: each of 50 ids is first once`, async () => {
    assert.deepEqual(sorted(await ask({ race: "first", ids: 50 })), numbers(50));
  });

  test(`${processes} processes: each of 50 ids is claimed and committed once`, async () => {
    assert.deepEqual(sorted(await ask({ race: "claim", ids: 50 })), numbers(50));
  });

  test(`${processes} processes: each of 5 bursts fires once`, async () => {
    const question = { race: "observe", identities: 5, calls: 6, threshold: 15 };
    assert.deepEqual(sorted(await ask(question)), numbers(5));
  });
}
