// What a server never sees: the whole conformance suite, by a user who may do only what the scripts need, while
// MONITOR writes down every command.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Limiter } from "tidegate";
import { storeConformance } from "tidegate/conformance";
import { RedisStore } from "tidegate/redis";
import { disconnect, single } from "./clients.mjs";
import { KINDS, Server, until } from "./servers.mjs";

const ALLOWED = ["get", "set", "del", "pttl", "time"];
const USER = ["on", "nopass", "~mine*", "-@all", "+@connection", "+evalsha", "+eval"];
const OURS = /^mine\d+\//;

for (const kind of KINDS) {
  describe(kind, () => {
    let server;
    let client;
    let monitor;
    /** Every command, and whether a script ran it. */
    const seen = [];
    let prefixes = 0;

    /** Waits for what was sent so far to be written down. */
    async function untilSeen(mark) {
      await server.ask("ECHO", mark);
      await until("it is seen", () => seen.at(-1)?.args[0] === mark);
    }

    before(async () => {
      server = await Server.start([], `${kind}-server`);
      await server.ask("ACL", "SETUSER", "tidegate", ...USER, ...ALLOWED.map((name) => `+${name}`));
      client = await single.iovalkey(server.port);
      await client.auth("tidegate", "any");
      const watching = server.client();
      monitor = await watching.monitor();
      watching.disconnect();
      monitor.on("monitor", (_time, [name, ...args], source) => {
        seen.push({ name: name.toLowerCase(), args, inScript: source === "lua" });
      });
    });

    after(async () => {
      monitor.disconnect();
      disconnect(client);
      await server.stop();
    });

    test("whether it is a cluster is asked once, also where that may not be asked", async () => {
      const store = new RedisStore(client, { prefix: `mine${prefixes++}` });
      const limiter = new Limiter({ limit: { limit: 9, window: "1h" }, store });
      for (const remaining of [8, 7, 6]) {
        assert.equal((await limiter.consume("key")).remaining, remaining);
      }
      await untilSeen("three decisions");
      assert.equal(seen.filter(({ name }) => name === "evalsha").length, 4);
    });

    storeConformance(test, () => new RedisStore(client, { prefix: `mine${prefixes++}` }));

    test("scripts touch declared keys alone, and what they write has an end", async () => {
      await untilSeen("the end");
      let declared;
      let written = 0;
      for (const { name, args, inScript } of seen) {
        if (name.startsWith("eval")) declared = args.slice(2, 2 + Number(args[1]));
        if (!inScript) continue;
        if (name === "time") continue;
        assert.ok(ALLOWED.includes(name), name);
        assert.ok(declared.includes(args[0]) && OURS.test(args[0]), `${name} of ${args[0]}`);
        if (name !== "set") continue;
        written += 1;
        assert.equal(args[2].toLowerCase(), "px");
        assert.ok(Number(args[3]) >= 1, args[3]);
      }
      assert.ok(written > 500, `${written} writes were seen`);
    });
  });
}
