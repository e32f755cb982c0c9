/** A tier's question to the shared store, in the core's numbers: which, on how many units, for how large a share, and
 * what is to be counted. */
export type Question = Float64Array;

const CONSUME = 0;
const RESERVE = 1;
const ADD = 2;
const ADD_NOTHING = 3;

/** Units of a plain question to decide; nothing for one that asks for more. */
export function plainCost([kind, cost]: Question): number | undefined {
  return kind === CONSUME ? cost : undefined;
}

/** Whether there is nothing to answer but that it is done. */
export function givesBack([kind = CONSUME]: Question): boolean {
  return kind > ADD_NOTHING;
}

/** The question about limits, in the wire's words. */
export function questionWords([kind, cost, units, ...delta]: Question, limits: string): string {
  switch (kind) {
    case CONSUME:
      return `C;${cost};${limits}`;
    case RESERVE:
      return `V;${cost};${limits};${units}`;
    case ADD:
      return `A;${cost};${limits};${delta.join()}`;
    case ADD_NOTHING:
      return `A;${cost};${limits};`;
    default:
      return `Y;;${limits};${delta.join()}`;
  }
}
