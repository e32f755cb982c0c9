// What a gateway costs a Socket.IO server: messages per second of the server's processor time, each kind of server in a
// process of its own, in turn, round after round. And what an idle socket keeps of it.

import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { RawClient } from "../gateway-fleet/raw-client.mjs";
import { Server } from "../redis/servers.mjs";
import { median } from "./measure.mjs";

const SOCKETS = 50;
const AT_ONCE = 20;
const MESSAGES = 20_000;
const ROUNDS = 7;
const WARM_UPS = 3;
const IDLE = 2_000;

class Contestant {
  static async start(kind, redisPort, execArgv = []) {
    const args = [kind, String(redisPort)];
    const child = fork(join(import.meta.dirname, "gateway-server.mjs"), args, {
      execArgv: ["--expose-gc", ...execArgv],
    });
    const [{ url }] = await once(child, "message");
    return new Contestant(kind, child, url);
  }

  constructor(kind, child, url) {
    Object.assign(this, { kind, child, url, clients: [], times: [], sent: 0 });
  }

  async connect(count) {
    for (let left = count; left > 0; left -= SOCKETS) {
      const some = Array.from({ length: Math.min(SOCKETS, left) }, () => new RawClient(this.url));
      await Promise.all(some.map(({ connected }) => connected));
      this.clients.push(...some);
    }
  }

  async used(what) {
    this.child.send(what);
    const [used] = await once(this.child, "message");
    return used;
  }

  /** Every client keeps so many messages under way. */
  async round() {
    const before = await this.used("cpu");
    let left = MESSAGES;
    const send = async (client) => {
      while (left-- > 0) {
        const { ok } = await client.ask("order", { mid: `m${this.sent++}`, item: "tea", count: 3 });
        if (!ok) throw new Error(`${this.kind} refused a message`);
      }
    };
    await Promise.all(
      this.clients.flatMap((client) => Array.from({ length: AT_ONCE }, () => send(client))),
    );
    const { user, system } = await this.used("cpu");
    return (user + system - before.user - before.system) / 1e6;
  }

  async end() {
    for (const client of this.clients) client.drop();
    const ended = once(this.child, "exit");
    this.child.disconnect();
    await ended;
  }
}

/** Messages per second of each, and the median of their rounds' ratios to the first. */
async function compare(kinds, redisPort) {
  const contestants = [];
  for (const kind of kinds) contestants.push(await Contestant.start(kind, redisPort));
  for (const contestant of contestants) await contestant.connect(SOCKETS);
  for (let round = -WARM_UPS; round < ROUNDS; round += 1) {
    for (const contestant of contestants) {
      const seconds = await contestant.round();
      if (round >= 0) contestant.times.push(seconds);
    }
  }
  const [first] = contestants;
  for (const { kind, times } of contestants) {
    const perSecond = MESSAGES / median(times);
    const ratio = median(times.map((time, round) => first.times[round] / time));
    console.log(`| ${kind} | ${perSecond.toFixed(0)} | ${ratio.toFixed(2)} |`);
  }
  for (const contestant of contestants) await contestant.end();
}

/** What the heap of a server grows by with each socket that waits. */
async function bytesPerSocket(kind) {
  const contestant = await Contestant.start(kind, 0);
  await contestant.connect(SOCKETS);
  const before = await contestant.used("heap");
  await contestant.connect(IDLE);
  await pause(500);
  const idle = await contestant.used("heap");
  for (const client of contestant.clients) await client.ask("order", { item: "tea" });
  await pause(500);
  const spoken = await contestant.used("heap");
  await contestant.end();
  return [idle, spoken].map((heap) => (heap - before) / IDLE);
}

const redis = await Server.start();
console.log("| server | messages per second | × the first |\n| --- | ---: | ---: |");
if (process.argv[2] !== "redis")
  await compare(["bare", "gateway", "gateway, a handler of socket.on"], 0);
if (process.argv[2] !== "memory") {
  await compare(["rate-limiter-flexible and SET NX", "gateway on Redis"], redis.port);
}
await redis.stop();
if (process.argv[2] === undefined) {
  const [bare, guarded] = [await bytesPerSocket("bare"), await bytesPerSocket("gateway")];
  console.log(`\nbytes of the gateway's own per idle socket: ${(guarded[0] - bare[0]).toFixed(0)}`);
  console.log(`once it has sent a message: ${(guarded[1] - bare[1]).toFixed(0)}`);
}
