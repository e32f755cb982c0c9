import { test } from "node:test";
import { storeFrom } from "tidegate";
import { storeConformance } from "tidegate/conformance";
import { mapStore } from "./stores/map.mjs";

let now = 1_700_000_000_123;
const adapter = mapStore(() => now);

storeConformance(test, () => storeFrom(adapter), {
  advance: async (ms) => {
    now += ms;
  },
  size: adapter.size,
});
