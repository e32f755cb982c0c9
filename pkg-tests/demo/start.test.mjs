import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { io } from "socket.io-client";
import { readOptions } from "../../js/demo/options.mjs";
import { Demo } from "./demo.mjs";

test("listens on port 3000 of this machine unless told, and --port wins over PORT", () => {
  const { host, port } = readOptions([], {});
  assert.deepEqual([host, port], ["127.0.0.1", 3000]);
  assert.equal(readOptions([], { PORT: "4000" }).port, 4000);
  assert.equal(readOptions(["--port", "5000"], { PORT: "4000" }).port, 5000);
  assert.equal(readOptions(["--host", "::1"], {}).host, "::1");
});

const wrong = [
  [["--port", "http"], {}, '--port must be a whole number from 0 to 65535, not "http"'],
  [["--port", "65536"], {}, '--port must be a whole number from 0 to 65535, not "65536"'],
  [["--port=-1"], {}, '--port must be a whole number from 0 to 65535, not "-1"'],
  [["--port", ""], {}, '--port must be a whole number from 0 to 65535, not ""'],
  [["--port"], {}, "'--port <value>' argument missing"],
  [[], { PORT: "3e3" }, 'PORT must be a whole number from 0 to 65535, not "3e3"'],
  [["--host", ""], {}, "--host must be"],
  [["--prot", "3000"], {}, "'--prot'"],
  [["3000"], {}, "'3000'"],
];
for (const [args, env, says] of wrong) {
  test(`${JSON.stringify([args, env])} is refused by name`, () => {
    assert.throws(
      () => readOptions(args, env),
      ({ message }) => message.includes(says),
    );
  });
}

test("a mistake on the command line is told in one line", async () => {
  const demo = new Demo(["--port", "http"]);
  assert.equal(await demo.end(), 1);
  assert.match(demo.output, /^tidegate demo: --port must be .*\n$/);
});

test("a port in use is told in one line", async (t) => {
  const first = await Demo.listening();
  t.after(() => first.end("SIGTERM"));
  const { port } = new URL(await first.url());
  const second = new Demo([], { PORT: port });
  assert.equal(await second.end(), 1);
  assert.match(
    second.output,
    new RegExp(`^tidegate demo: port ${port} of .*: in use, .*--port\n$`),
  );
});

for (const signal of ["SIGINT", "SIGTERM"]) {
  test(`${signal} ends it with code 0, once the work under way is acknowledged`, async (t) => {
    const demo = await Demo.listening();
    const socket = io(await demo.url(), { reconnection: false });
    t.after(() => socket.disconnect());
    await once(socket, "connect");
    const gone = once(socket, "disconnect");
    const order = socket.emitWithAck("order", { mid: "under way" });
    await socket.emitWithAck("chat", {});
    assert.equal(await demo.end(signal), 0, demo.output);
    assert.equal((await order).ok, true);
    await gone;
  });
}
