import type { Asked } from "./operation.js";

/** A batch as a shard takes it: its head, and a line for each operation. */
export function linesOf(head: string, batch: readonly Asked[]): string {
  let lines = head;
  for (const { key, op } of batch) lines += `\n${key}\t${op}`;
  return lines;
}

/** The texts of a reply. */
export function textsOf(reply: string): string[] {
  return reply.split("\n");
}
