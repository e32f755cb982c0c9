// npm start: sets up, builds, and runs the demonstration with the arguments that it was given.

import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "./build.mjs";
import { setup } from "./setup.mjs";
import { main, root } from "./shell.mjs";

await main(import.meta, async () => {
  await setup();
  await build();
  // npm passes on the Ctrl-C that the terminal has sent already. The second one must not cut the end
  // short, so this process is there to hear it.
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => setTimeout(() => {}, 300));
  // In this process, so that the server itself hears the signal.
  const server = join(root, "js/demo/server.mjs");
  process.argv[1] = server;
  await import(pathToFileURL(server).href);
});
