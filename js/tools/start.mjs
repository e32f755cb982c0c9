// npm start: sets up, builds, and runs the demonstration with the arguments that it was given.

import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "./build.mjs";
import { setup } from "./setup.mjs";
import { main, root } from "./shell.mjs";

await main(import.meta, async () => {
  await setup();
  await build();
  // In this process, so that the server itself hears Ctrl-C and nothing has to pass it on.
  const server = join(root, "js/demo/server.mjs");
  process.argv[1] = server;
  await import(pathToFileURL(server).href);
});
