/** A Durable Object's storage, as far as it is used. */
export interface Storage {
  readonly sql: Sql;
  transactionSync<T>(body: () => T): T;
  getAlarm(): Promise<number | null>;
  setAlarm(at: number): Promise<void>;
  deleteAll(): Promise<void>;
}

interface Sql {
  readonly databaseSize: number;
  exec(query: string, ...values: (string | number)[]): { raw(): Iterator<unknown[]> };
}

/**
 * One row per key, without a second table for the key to be found by, and without an index that every decision
 * would have to write: sweeps are rare enough to read all rows.
 */
const CREATE =
  "CREATE TABLE IF NOT EXISTS records (key TEXT PRIMARY KEY, record TEXT NOT NULL, over_at INTEGER NOT NULL) WITHOUT ROWID";
const GET = "SELECT record FROM records WHERE key = ?";
const PUT =
  "INSERT INTO records (key, record, over_at) VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE SET record = excluded.record, over_at = excluded.over_at";
const DELETE = "DELETE FROM records WHERE key = ?";
const SWEEP = "DELETE FROM records WHERE over_at <= ?";
const NEXT = "SELECT MIN(over_at) FROM records";

/** New keys are refused from this size on; a Durable Object may have ten times as much. */
const MOST_BYTES = 2 ** 30;

/** The table of a shard: key, record, and from when on the row may go. */
export class Table {
  readonly #storage: Storage;
  #isMade = false;

  constructor(storage: Storage) {
    this.#storage = storage;
  }

  /** Whether it is known to be there. */
  get isMade(): boolean {
    return this.#isMade;
  }

  make(): void {
    if (this.#isMade) return;
    this.#storage.sql.exec(CREATE);
    this.#isMade = true;
  }

  /** It may be gone. */
  doubt(): void {
    this.#isMade = false;
  }

  get(key: string): string | undefined {
    return this.#first(GET, key) as string | undefined;
  }

  /** False where a new row finds no room. */
  put(key: string, record: string, overAt: number, isNew: boolean): boolean {
    const { sql } = this.#storage;
    if (isNew && sql.databaseSize > MOST_BYTES) return false;
    sql.exec(PUT, key, record, overAt);
    return true;
  }

  delete(key: string): void {
    this.#storage.sql.exec(DELETE, key);
  }

  /** Deletes what is over; answers when the next row is, if there is one. */
  sweep(now: number): number | undefined {
    this.#storage.sql.exec(SWEEP, now);
    return (this.#first(NEXT) ?? undefined) as number | undefined;
  }

  #first(query: string, ...values: string[]): unknown {
    return this.#storage.sql
      .exec(query, ...values)
      .raw()
      .next().value?.[0];
  }
}
