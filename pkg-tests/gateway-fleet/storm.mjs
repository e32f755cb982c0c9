// Sockets that all come back at once, again and again: what every one of them is told, and what they leave behind.

import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

const PROCESSES = 4;
/** What may be left of a socket that has come and gone: less than any one thing that is kept for it. */
const BYTES = 64;
/** When the heap falls by less, what was under way is over. */
const SETTLED = 50_000;
/** By how much the heap of a server that does the same again and again goes up and down. */
const SWING = 700_000;

async function started(program, args, options) {
  const child = fork(join(import.meta.dirname, program), args, options);
  const [said] = await once(child, "message");
  return { child, said };
}

async function asked({ child }, question) {
  child.send(question);
  const [answer] = await once(child, "message");
  return answer;
}

/** `redisPort`: where the gateway's store is; in its own memory when there is none. */
export async function weather(sockets, redisPort = "") {
  const env = { ...process.env, REDIS_PORT: redisPort };
  const server = await started("storm-server.mjs", [], { env, execArgv: ["--expose-gc"] });
  const crowd = await Promise.all(
    Array.from({ length: PROCESSES }, (_, at) =>
      started("storm-clients.mjs", [
        server.said.url,
        `127.0.0.${at + 2}`,
        String(sockets / PROCESSES),
      ]),
    ),
  );
  const everyone = [server, ...crowd];
  const ended = everyone.map(({ child }) => once(child, "exit"));
  const storm = async () => {
    const welcome = await Promise.all(crowd.map((some) => asked(some, "storm")));
    assert.equal(
      welcome.reduce((sum, count) => sum + count, 0),
      sockets,
    );
    for (let last = Number.POSITIVE_INFINITY; ; ) {
      const { open, heap, handled } = await asked(server, "state");
      if (open === 0 && heap > last - SETTLED) return { heap, handled };
      last = heap;
      await pause(100);
    }
  };
  try {
    // The first two leave what is to be remembered, and tables as large as they have to be.
    await storm();
    const before = await storm();
    const after = await storm();
    assert.equal(after.handled, sockets / 2, "a message is handled once, however often it comes");
    const left = after.heap - before.heap;
    assert.ok(left < BYTES * sockets + SWING, `${left} bytes are left of ${sockets} sockets`);
    return left / sockets;
  } finally {
    for (const { child } of everyone) if (child.connected) child.disconnect();
    await Promise.all(ended);
  }
}
