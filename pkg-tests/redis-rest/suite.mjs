// The conformance suite over RedisRestStore, for where there is no test runner.

import { storeConformance } from "tidegate/conformance";
import { RedisRestStore } from "tidegate/redis-rest";

/** Runs every case, and answers how many there were and what failed. */
export async function runSuite(options) {
  const cases = [];
  let stores = 0;
  const makeStore = () => {
    stores += 1;
    return new RedisRestStore({ ...options, prefix: `${options.prefix}-${stores}` });
  };
  storeConformance((name, body) => cases.push({ name, body }), makeStore);
  const failed = [];
  for (const { name, body } of cases) {
    await body().catch((error) => failed.push(`${name}: ${error.message}`));
  }
  return { cases: cases.length, failed };
}
