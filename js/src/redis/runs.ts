import type { Asked } from "../wire/operation.js";

/** Operations as the script's arguments: those that are the same one after the other travel as one. */
export function runsOf(operations: readonly Asked[]): string[] {
  const runs: string[] = [];
  let count = 0;
  for (let at = 0; at < operations.length; at += 1) {
    const op = operations[at]?.op;
    count += 1;
    if (operations[at + 1]?.op === op) continue;
    runs.push(`${count};${op}`);
    count = 0;
  }
  return runs;
}
