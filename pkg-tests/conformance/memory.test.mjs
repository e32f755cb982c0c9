import { describe, test } from "node:test";
import { MemoryStore } from "tidegate";
import { storeConformance } from "tidegate/conformance";

describe("MemoryStore, by the test's clock", () => {
  let now = 1_700_000_000_123;
  storeConformance(test, () => new MemoryStore({ now: () => now }), {
    advance: async (ms) => {
      now += ms;
    },
  });
});

describe("MemoryStore, by its own clock", () => {
  storeConformance(test, () => new MemoryStore());
});

describe("MemoryStore, by a clock that runs while the test moves it", () => {
  let ahead = 0;
  storeConformance(test, () => new MemoryStore({ now: () => performance.now() + ahead }), {
    advance: async (ms) => {
      ahead += ms;
    },
  });
});
