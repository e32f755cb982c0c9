import type { Decision } from "../decision.js";
import { isCallers, show } from "../errors.js";
import { answered } from "./answer.js";
import { Budget } from "./budget.js";
import { type Identity, keyOf, keyPart } from "./identity.js";
import { idText } from "./message-id.js";
import type { Admission, Messages } from "./messages.js";
import type { Packet } from "./packet.js";
import { type Refusal, refusal, refusalOf } from "./refusal.js";
import type { Rule } from "./rule.js";
import { report, type Socket } from "./server.js";
import type { Settings } from "./settings.js";
import { PASS, type Verdict } from "./verdict.js";

/** What an event's rule keeps for the sender of this socket: made once, since every packet needs it. */
interface Account {
  readonly budget: Budget | undefined;
  /** What the keys of its messages begin with. */
  readonly ids: string;
}

/** What a rule says of one packet. */
interface Order {
  readonly budget: Budget | undefined;
  readonly cost: number;
  readonly sender: string;
  readonly messages: Messages | undefined;
  /** The message's, where it has an id. */
  readonly key: string | undefined;
}

/** Decides what becomes of the packets of one socket: first the limit, then the claim. */
export class Judge {
  readonly #socket: Socket;
  readonly #settings: Settings;
  /** Whose budgets these are. */
  #name: unknown;
  #identity: Identity | undefined;
  readonly #accounts = new Map<string | undefined, Account>();

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
    let admission: Admission | undefined;
    try {
      const decision = order.budget?.consume(order.cost);
      // Right behind the decision, so that both travel together.
      admission = admissionTo(order, decision !== undefined);
      if (decision === undefined) return admitted(admission);
      if (!(decision instanceof Promise)) return decided(admission, decision);
      return decision.then(
        (decision) => decided(admission, decision),
        (error) => this.#undecided(admission, error),
      );
    } catch (error) {
      return this.#undecided(admission, error);
    }
  }

  /** Lets limits and ids be counted as if they were enforced. */
  async rehearse(packet: Packet): Promise<void> {
    const rule = this.#settings.rules.of(packet.name);
    const order = rule === undefined ? undefined : this.#order(rule, packet);
    if (order === undefined || this.#settings.isClosed) return;
    try {
      const decision = await order.budget?.consume(order.cost);
      if (decision?.dryRun || order.key === undefined) return;
      await order.messages?.rehearse(order.key);
    } catch {
      // A rehearsal changes nothing, and so does its failure.
    }
  }

  /** The socket is gone for good: forgets what is kept under its own id. */
  async forget(): Promise<void> {
    if (this.#name !== this.#socket.id) return;
    await Promise.allSettled([...this.#accounts.values()].map(({ budget }) => budget?.reset()));
  }

  /** What the rule says of the packet; undefined when a function of the user could not tell. */
  #order(rule: Rule, packet: Packet): Order | undefined {
    try {
      const { messages } = rule;
      const { sender } = this.#identify();
      const isHeard = this.#isHeard(packet.name);
      // A client invents names, but not listeners, so names without one share one budget.
      const { budget, ids } = this.#account(
        rule,
        rule.isNamed || isHeard ? packet.name : undefined,
      );
      const key = messages && isHeard ? messageKey(ids, messages.idOf(packet.args)) : undefined;
      return { budget, cost: costOf(rule, packet), sender, messages, key };
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
      this.#accounts.clear();
    }
    return this.#identity;
  }

  #account({ limiter }: Rule, event: string | undefined): Account {
    const known = this.#accounts.get(event);
    if (known !== undefined) return known;
    const { budget, sender } = this.#identify();
    const namespace = this.#socket.nsp.name;
    const scope = event === undefined ? keyOf(namespace) : keyOf(namespace, event);
    const account = {
      budget: limiter && new Budget(limiter, `${budget}:${scope}`, this.#settings.synchronous),
      ids: `${sender}:${scope}:`,
    };
    this.#accounts.set(event, account);
    return account;
  }

  #isHeard(event: string | undefined): boolean {
    return event !== undefined && this.#socket.listenerCount(event) > 0;
  }

  /** The store failed in a way that its limiter has no answer to. */
  #undecided(admission: Admission | undefined, error: unknown): Verdict | Promise<Verdict> {
    report(this.#socket, error);
    if (this.#settings.onStoreError === "allow" && !isCallers(error)) return admitted(admission);
    void admission?.(false);
    return refuse(this.#unavailable());
  }

  #unavailable(): Refusal {
    return refusal("STORE_UNAVAILABLE", this.#settings.timeoutMs);
  }
}

/** What comes of a message that has an id. */
function admissionTo({ messages, sender, key }: Order, hasLimit: boolean): Admission | undefined {
  return key === undefined ? undefined : messages?.admit(sender, key, hasLimit);
}

function admitted(admission: Admission | undefined): Verdict | Promise<Verdict> {
  return admission === undefined ? PASS : (admission(true) as Verdict | Promise<Verdict>);
}

function decided(admission: Admission | undefined, decision: Decision): Verdict | Promise<Verdict> {
  if (decision.allowed) return admitted(admission);
  const refused = refuse(refusalOf(decision));
  const outcome = admission?.(false);
  if (refused.refusal.code !== "RATE_LIMITED") return refused;
  if (outcome instanceof Promise) return outcome.then((outcome) => outcome ?? refused);
  return outcome ?? refused;
}

function refuse(refused: Refusal): { readonly act: "refuse"; readonly refusal: Refusal } {
  return { act: "refuse", refusal: refused };
}

/** The key of the message; undefined where its id is none. */
function messageKey(ids: string, id: unknown): string | undefined {
  const text = idText(answered(id, "id"));
  return text === undefined ? undefined : ids + keyPart(text);
}

function costOf({ cost }: Rule, packet: Packet): number {
  if (typeof cost === "number") return cost;
  const units = answered(cost(packet.args), "cost");
  if (Number.isSafeInteger(units) && (units as number) >= 1) return units as number;
  throw new TypeError(`cost must answer a positive safe integer, but answered ${show(units)}`);
}
