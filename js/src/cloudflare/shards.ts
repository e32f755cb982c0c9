import { TidegateError } from "../errors.js";
import { bad } from "../options.js";
import type { Fetch } from "../remote/options.js";
import type { Requests } from "../remote/requests.js";
import { linesOf, textsOf } from "../wire/lines.js";
import type { Asked } from "../wire/operation.js";

/** What the binding of a Durable Object class is, as far as it is used. */
interface Namespace {
  idFromName(name: string): unknown;
  get(id: unknown): { fetch: Fetch };
}

/** The numbers of shards that deployments are known to have, by their namespaces. */
const known = new WeakMap<Namespace, number>();

/** The object that knows the number. */
const REGISTRY = "shards";

/** The objects of a deployment. */
export class Shards {
  readonly #namespace: Namespace;
  readonly #count: number;
  readonly #requests: Requests;
  /** The objects' ids: their names are few, and making an id of one takes a while. */
  readonly #ids = new Map<string, unknown>();
  #asked: Promise<void> | undefined;

  constructor(namespace: Namespace, count: number, requests: Requests) {
    this.#namespace = namespace;
    this.#count = count;
    this.#requests = requests;
  }

  /** The shard of a key: FNV-1a, 32 bits, over its bytes. Keys are ASCII. */
  of(key: string): number {
    let hash = 0x811c9dc5;
    for (let at = 0; at < key.length; at += 1) {
      hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193);
    }
    return (hash >>> 0) % this.#count;
  }

  /** Sends a batch for one shard. */
  async send(batch: readonly Asked[]): Promise<string[]> {
    if (known.get(this.#namespace) !== this.#count) await this.#agree();
    const shard = this.of(batch[0]?.key ?? "");
    const lines = linesOf(`1;${this.#count}`, batch);
    return textsOf(await this.#post(`${this.#count}/${shard}`, "/", lines));
  }

  /**
   * Another number would be other objects, and a second budget. Batches of one tick ask once; those of other ticks,
   * which may be other requests', wait for none but their own question.
   */
  #agree(): Promise<void> {
    if (this.#asked === undefined) {
      this.#asked = this.#ask();
      queueMicrotask(() => {
        this.#asked = undefined;
      });
    }
    return this.#asked;
  }

  async #ask(): Promise<void> {
    const count = await this.#post(REGISTRY, "/shards", String(this.#count));
    if (count !== String(this.#count)) {
      const why = `this deployment has ${count} shards, but the option "shards" is ${this.#count}`;
      throw new TidegateError("store", why);
    }
    known.set(this.#namespace, this.#count);
  }

  async #post(name: string, path: string, body: string): Promise<string> {
    const object: Fetch = async (url, init) => this.#object(name).fetch(url, init);
    const { status, text } = await this.#requests.post(object, `https://shard${path}`, {}, body);
    if (status === 200) return text;
    throw new TidegateError("store", `the object refused (${status}): ${text}`);
  }

  #object(name: string): { fetch: Fetch } {
    const id = this.#ids.get(name) ?? this.#namespace.idFromName(name);
    this.#ids.set(name, id);
    return this.#namespace.get(id);
  }
}

/** A namespace, by its shape. */
export function namespaceOf(value: unknown): Namespace {
  const shape = value as Partial<Namespace> | null | undefined;
  if (typeof shape?.idFromName === "function" && typeof shape.get === "function") {
    return shape as Namespace;
  }
  bad("bad_policy", "namespace", value, "a Durable Object namespace, such as env.TIDEGATE_SHARD");
}
