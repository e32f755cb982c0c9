import type { Limiter } from "../limiter.js";
import type { Messages } from "./messages.js";

/** What holds for an event: what it costs of which limit, and whether its repetitions are found. */
export interface Rule {
  /** False for the rule of all events that have none of their own. */
  readonly isNamed: boolean;
  readonly limiter: Limiter | undefined;
  readonly cost: number | ((args: unknown[]) => unknown);
  readonly messages: Messages | undefined;
}

/** The name under which the rule of all other events is given. */
export const OTHERS = "*";

/** The rules by the names of their events. */
export class Rules {
  readonly all: readonly Rule[];
  readonly #named: ReadonlyMap<string, Rule>;
  readonly #others: Rule | undefined;

  constructor(named: ReadonlyMap<string, Rule>) {
    this.all = [...named.values()];
    this.#named = named;
    this.#others = named.get(OTHERS);
  }

  of(event: string | undefined): Rule | undefined {
    return (event === undefined ? undefined : this.#named.get(event)) ?? this.#others;
  }
}
