/** How soon those who wait ask again: soon at first, less often later. */
const FIRST_PAUSE_MS = 5;
const LONGEST_PAUSE_MS = 250;

/** What is asked for, and when it makes sense to ask again if it is still being worked on. */
type Found = { readonly status: string; readonly retryAfterMs?: number };

interface Waiter<T> {
  isWanted(): boolean;
  resolve(found: T | undefined): void;
  reject(error: unknown): void;
}

/** Asks what has become of ids that others work on: however many wait for an id here, it is asked for once. */
export class Polls<T extends Found> {
  readonly #look: (id: string) => T | Promise<T>;
  readonly #waiting = new Map<string, Waiter<T>[]>();

  constructor(look: (id: string) => T | Promise<T>) {
    this.#look = look;
  }

  /** What is found once the id is no longer in progress; undefined when that is wanted no more. */
  over(id: string, retryAfterMs: number, isWanted = () => true): Promise<T | undefined> {
    return new Promise((resolve, reject) => {
      const waiters = this.#waiting.get(id) ?? [];
      waiters.push({ isWanted, resolve, reject });
      if (waiters.length === 1) void this.#poll(id, waiters, retryAfterMs);
    });
  }

  async #poll(id: string, waiters: Waiter<T>[], retryAfterMs: number): Promise<void> {
    this.#waiting.set(id, waiters);
    let [pauseMs, mostMs] = [FIRST_PAUSE_MS, retryAfterMs];
    try {
      while (await this.#isWanted(id, Math.min(pauseMs, mostMs))) {
        const found = await this.#look(id);
        if (found.status !== "in-progress") {
          for (const { resolve } of this.#taken(id)) resolve(found);
          return;
        }
        pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
        mostMs = found.retryAfterMs ?? LONGEST_PAUSE_MS;
      }
    } catch (error) {
      for (const { reject } of this.#taken(id)) reject(error);
    }
  }

  /** After that pause, whether anybody still waits. */
  async #isWanted(id: string, ms: number): Promise<boolean> {
    await new Promise((resolve) => setTimeout(resolve, ms));
    const wanted: Waiter<T>[] = [];
    for (const waiter of this.#taken(id)) {
      if (waiter.isWanted()) wanted.push(waiter);
      else waiter.resolve(undefined);
    }
    if (wanted.length > 0) this.#waiting.set(id, wanted);
    return wanted.length > 0;
  }

  #taken(id: string): Waiter<T>[] {
    const waiters = this.#waiting.get(id) ?? [];
    this.#waiting.delete(id);
    return waiters;
  }
}
