/** Who waits for an answer. One of these is called, once. */
export interface Waiter<T> {
  answered(value: T): void;
  /** The answer was there at once. Where it is left out: as `answered`. */
  known?(value: T): void;
  failed(error: unknown): void;
}

/** An answer on its way to one who waits for it: a promise, without what a promise costs. */
export abstract class Pending<T> {
  /** Says who waits; whoever asked does this at once. */
  abstract tell(waiter: Waiter<T>): void;
}

/** What a driver answers: at once, by a promise, or to whoever waits. */
export type Answer<T> = T | Promise<T> | Pending<T>;

/** Tells the waiter what the answer is or comes to be. */
export function whenAnswered<T>(answer: Answer<T>, waiter: Waiter<T>): void {
  if (answer instanceof Pending) {
    answer.tell(waiter);
    return;
  }
  if (!(answer instanceof Promise)) {
    if (waiter.known === undefined) waiter.answered(answer);
    else waiter.known(answer);
    return;
  }
  answer.then(
    (value) => waiter.answered(value),
    (error) => waiter.failed(error),
  );
}

/** The answer as a promise. */
export function promised<T>(answer: Answer<T>): Promise<T> {
  return new Promise((answered, failed) => whenAnswered(answer, { answered, failed }));
}
