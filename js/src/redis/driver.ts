import type { ArkosGatewayStore } from "../arkos/gateway-store.js";
import type { Batches } from "../wire/batches.js";
import { WireDriver } from "../wire/driver.js";
import { ArkosRedisTable } from "./arkos-table.js";

/** A connection to Redis: calls run in the order in which they were sent, and keys can be kept together. */
export class RedisDriver extends WireDriver {
  readonly pipelines = true;
  readonly asArkos: () => ArkosGatewayStore;

  constructor(batches: Batches, storePrefix: string | undefined) {
    super(batches, storePrefix);
    this.asArkos = () => new ArkosRedisTable(batches, storePrefix);
  }
}
