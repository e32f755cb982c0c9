// npm run soak: the property tests in their long form, a million operations and more for each property, optimised
// but with overflow checks on. What fails prints the smallest input that does.

import { setupTests } from "../../js/tools/setup.mjs";
import { main, run } from "../../js/tools/shell.mjs";

await main(import.meta, async () => {
  await setupTests();
  const env = {
    TIDEGATE_SOAK: process.env.TIDEGATE_SOAK ?? "1",
    CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS: "true",
  };
  const output = await run("cargo", ["test", "--release", "--tests"], { env });
  console.log(output.match(/^(?: +Running|test ).*$/gm).join("\n"));
});
