/** A gateway in front of the handlers of Socket.IO servers: limits, and every message handled once. */

export { createGateway, type Gateway } from "./socket-io/gateway.js";
export type { EventRule, GatewayOptions } from "./socket-io/gateway-options.js";
export type { Acks, Refusal, RefusalCode } from "./socket-io/refusal.js";
