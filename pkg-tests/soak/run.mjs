// npm run soak: the property tests in their long form, a million operations and more for each property, optimised
// but with overflow checks on; a fleet with twenty times as much to do, tiers under load for a minute each, and storms
// of 20 000 sockets, for which there may have to be more open files (ulimit -n). What fails prints the smallest input
// that does.

import { join } from "node:path";
import { build } from "../../js/tools/build.mjs";
import { setupTests } from "../../js/tools/setup.mjs";
import { main, root, run } from "../../js/tools/shell.mjs";
import { pack } from "../pack.mjs";

const FLEETS = ["fleet", "tiers"];

await main(import.meta, async () => {
  await setupTests();
  const env = {
    TIDEGATE_SOAK: process.env.TIDEGATE_SOAK ?? "1",
    CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS: "true",
  };
  await build();
  await pack();
  for (const name of FLEETS) {
    const fleet = join(root, "pkg-tests", name, "fleet.test.mjs");
    console.log(await run(process.execPath, ["--test", "--test-reporter=spec", fleet], { env }));
  }
  console.log((await run(process.execPath, [join(root, "pkg-tests/soak/storm.mjs")])).trimEnd());
  const output = await run("cargo", ["test", "--release", "--tests"], { env });
  console.log(output.match(/^(?: +Running|test ).*$/gm).join("\n"));
});
