import type { ArkosGatewayStore } from "../arkos/gateway-store.js";
import type { LimitOptions } from "../limits.js";
import type { Duration } from "../options.js";
import type { Store } from "../store.js";
import type { Acks } from "./refusal.js";

/** What holds for one event. */
export interface EventRule {
  limit?: LimitOptions | LimitOptions[];
  /** Units one event costs. Default 1. A function that throws or answers nonsense refuses the packet (BAD_REQUEST). */
  cost?: number | ((args: unknown[]) => number);
  /** Handles a message once, however often it is sent. An id belongs to its sender: the identity, or, while no user is known, the connection. */
  dedup?: {
    /** How long a message that was handled is remembered. Default 1 h. */
    ttl?: Duration;
    /** How long a handler may take before another may handle the message. Default 30 s; renewed while gateway.on's handler runs. */
    lease?: Duration;
    /**
     * Finds the message id. Default: payload._meta?.mid ?? payload.mid, own properties only. A non-empty string, or a
     * finite number (taken as its text); with anything else the packet is not deduplicated.
     */
    id?: (args: unknown[]) => string | undefined;
  };
}

export interface GatewayOptions {
  /**
   * Default: a new MemoryStore. Over the store of an Arkos gateway limits are fixed windows, and a message is remembered
   * from when it is let through: a handler that fails cannot have it back.
   */
  store?: Store | ArkosGatewayStore;
  /** Namespaces the keys. Default "tg". */
  prefix?: string;
  /**
   * Whose budget. Default: the user (socket.data.userId ?? socket.data.user?.id), else the address by ipKey. Where it
   * answers socket.id, the socket's limits are forgotten when it leaves for good; any other identity keeps its budget.
   */
  identify?: (socket: any) => string;
  /** Limits handshakes, before authentication and before any event; by address unless `identify` says otherwise. */
  connect?: {
    limit: LimitOptions;
    identify?: (socket: any) => string;
    /** Open sockets per identity and namespace, in this process. */
    maxSockets?: number;
  };
  /**
   * Per event name; "*" is for every event without a rule of its own, each name with its own budget, except that names
   * without a listener share one. Namespaces have separate budgets.
   */
  events?: Record<string, EventRule>;
  /**
   * Tells of a burst, once in the whole fleet: counts packets and handshakes of sockets for which `when` holds (default:
   * no user is known), by address. An onBurst that fails is called again, from 100 ms on with backoff, 5 times.
   */
  burst?: {
    threshold: number;
    window: Duration;
    cooldown?: Duration;
    when?: (socket: any) => boolean;
    onBurst: (e: { identity: string; count: number }) => void;
  };
  /**
   * What a failed store means. Default "deny". "local": this process decides by itself, and remembers for itself which
   * messages it handled: a copy that reaches another process, then or once the store answers again, may be handled there.
   */
  onStoreError?: "allow" | "deny" | "local";
  /** Deadline of one decision of the store. Default 500 ms. */
  timeout?: Duration;
  /**
   * Which proxies' x-forwarded-for to believe: their number, or their addresses and CIDRs. Read from the right; fewer
   * hops than told: the peer's address. Default: none.
   */
  trustProxy?: number | string[];
  /** Packets of one socket that may wait for the store. Beyond it: OVERLOADED. Default 1000. */
  queueLimit?: number;
  /** The shape of acknowledgements: ours, those of Arkos, or your own. */
  acks?: Acks;
  /** Report, but refuse nothing. */
  dryRun?: boolean;
  /** Disconnect a socket after so many denials within so long. Default: never. */
  disconnectAfter?: { denials: number; window: Duration };
}
