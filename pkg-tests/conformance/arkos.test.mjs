import { test } from "node:test";
import { storeFrom } from "tidegate";
import { MemoryGatewayStore } from "tidegate/arkos";
import { storeConformance } from "tidegate/conformance";

const arkos = new MemoryGatewayStore();

storeConformance(test, () => storeFrom(arkos));
