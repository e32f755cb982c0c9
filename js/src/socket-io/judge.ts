import type { Decision } from "../decision.js";
import { show } from "../errors.js";
import type { Limiter } from "../limiter.js";
import { answered } from "./answer.js";
import { Budget } from "./budget.js";
import { type Identity, keyOf, messageKey } from "./identity.js";
import { idText } from "./message-id.js";
import type { Messages } from "./messages.js";
import type { Packet } from "./packet.js";
import { type Refusal, refusal, refusalOf } from "./refusal.js";
import type { Rule } from "./rule.js";
import { report, type Socket } from "./server.js";
import type { Settings } from "./settings.js";
import { PASS, type Verdict } from "./verdict.js";

/** What a rule says of one packet. */
interface Order {
  readonly budget: Budget | undefined;
  readonly cost: number;
  /** Where the message has an id. */
  readonly message: { readonly messages: Messages; readonly key: string } | undefined;
}

/** Decides what becomes of the packets of one socket: first the limit, then the claim. */
export class Judge {
  readonly #socket: Socket;
  readonly #settings: Settings;
  /** Whose budgets these are. */
  #name: unknown;
  #identity: Identity | undefined;
  #budgets = new Map<string | undefined, Budget>();

  constructor(socket: Socket, settings: Settings) {
    this.#socket = socket;
    this.#settings = settings;
  }

  /** At once where nothing but a synchronous store has to be asked. Never throws, never rejects. */
  judge(packet: Packet): Verdict | Promise<Verdict> {
    const rule = this.#settings.rules.of(packet.name);
    if (rule === undefined) return PASS;
    if (this.#settings.isClosed) return refuse(this.#unavailable());
    const order = this.#order(rule, packet);
    if (order === undefined) return refuse(refusal("BAD_REQUEST"));
    try {
      const decision = order.budget?.consume(order.cost);
      if (decision === undefined) return this.#admitted(order.message);
      if (!(decision instanceof Promise)) return this.#decided(order, decision);
      return decision.then(
        (decision) => this.#decided(order, decision),
        (error) => this.#undecided(order, error),
      );
    } catch (error) {
      return this.#undecided(order, error);
    }
  }

  /** Lets limits and ids be counted as if they were enforced. */
  async rehearse(packet: Packet): Promise<void> {
    const rule = this.#settings.rules.of(packet.name);
    const order = rule === undefined ? undefined : this.#order(rule, packet);
    if (order === undefined || this.#settings.isClosed) return;
    try {
      const decision = await order.budget?.consume(order.cost);
      if (!decision?.dryRun) await order.message?.messages.rehearse(order.message.key);
    } catch {
      // A rehearsal changes nothing, and so does its failure.
    }
  }

  /** The socket is gone for good: forgets what is kept under its own id. */
  async forget(): Promise<void> {
    if (this.#name !== this.#socket.id) return;
    await Promise.allSettled([...this.#budgets.values()].map((budget) => budget.reset()));
  }

  /** What the rule says of the packet; undefined when a function of the user could not tell. */
  #order(rule: Rule, packet: Packet): Order | undefined {
    try {
      const { limiter, messages } = rule;
      const identity = this.#identify();
      const budget = limiter && this.#budget(limiter, this.#owned(rule, packet.name), identity);
      const key = messages && this.#messageKey(messages, packet, identity);
      const message = messages && key !== undefined ? { messages, key } : undefined;
      return { budget, cost: costOf(rule, packet), message };
    } catch (error) {
      report(this.#socket, error);
      return undefined;
    }
  }

  /** Read for every packet, since a socket may become somebody else's when its user logs in. */
  #identify(): Identity {
    const { identities } = this.#settings;
    const name = answered(identities.name(this.#socket), "identify");
    if (this.#identity === undefined || name !== this.#name) {
      this.#identity = identities.of(this.#socket, name);
      this.#name = name;
      this.#budgets.clear();
    }
    return this.#identity;
  }

  /** The event whose budget it is: a client invents names, but not listeners, so names without one share one. */
  #owned({ isNamed }: Rule, event: string | undefined): string | undefined {
    return isNamed || this.#isHeard(event) ? event : undefined;
  }

  #budget(limiter: Limiter, event: string | undefined, identity: Identity): Budget {
    let budget = this.#budgets.get(event);
    if (budget === undefined) {
      const namespace = this.#socket.nsp.name;
      const scope = event === undefined ? keyOf(namespace) : keyOf(namespace, event);
      budget = new Budget(limiter, `${identity.budget}:${scope}`, this.#settings.synchronous);
      this.#budgets.set(event, budget);
    }
    return budget;
  }

  /** The key of the message's id; undefined where it has none, or nobody would handle it. */
  #messageKey(messages: Messages, packet: Packet, { sender }: Identity): string | undefined {
    const { name } = packet;
    const id = idText(answered(messages.idOf(packet.args), "id"));
    if (id === undefined || name === undefined || !this.#isHeard(name)) return undefined;
    return messageKey(sender, this.#socket.nsp.name, name, id);
  }
  #isHeard(event: string | undefined): boolean {
    return event !== undefined && this.#socket.listenerCount(event) > 0;
  }

  #decided({ message }: Order, decision: Decision): Verdict | Promise<Verdict> {
    if (decision.allowed) return this.#admitted(message);
    const refused = refuse(refusalOf(decision));
    if (message === undefined || refused.refusal.code !== "RATE_LIMITED") return refused;
    return message.messages.outcome(message.key).then((outcome) => outcome ?? refused);
  }

  #admitted(message: Order["message"]): Verdict | Promise<Verdict> {
    return message === undefined ? PASS : message.messages.claim(message.key);
  }

  /** The store failed in a way that its limiter has no answer to. */
  #undecided({ message }: Order, error: unknown): Verdict | Promise<Verdict> {
    report(this.#socket, error);
    const { onStoreError } = this.#settings;
    return onStoreError === "allow" ? this.#admitted(message) : refuse(this.#unavailable());
  }

  #unavailable(): Refusal {
    return refusal("STORE_UNAVAILABLE", this.#settings.timeoutMs);
  }
}

function refuse(refused: Refusal): { readonly act: "refuse"; readonly refusal: Refusal } {
  return { act: "refuse", refusal: refused };
}

function costOf({ cost }: Rule, packet: Packet): number {
  if (typeof cost === "number") return cost;
  const units = answered(cost(packet.args), "cost");
  if (Number.isSafeInteger(units) && (units as number) >= 1) return units as number;
  throw new TypeError(`cost must answer a positive safe integer, but answered ${show(units)}`);
}
