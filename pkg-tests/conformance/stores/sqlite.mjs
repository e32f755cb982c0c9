// A table of SQLite, which several processes may share. Its answers are there at once, and time is the caller's.

const schema = `create table if not exists records
  (key text primary key, value text not null, expires_at integer not null) without rowid`;

/**
 * @param database of better-sqlite3 or node:sqlite, which agree on what is used here
 * @returns {import("tidegate").CasAdapter}
 */
export function sqliteStore(database) {
  database.exec("pragma busy_timeout = 10000");
  database.exec("pragma journal_mode = wal");
  database.exec("pragma synchronous = off");
  database.exec(schema);

  const read = database.prepare("select value from records where key = ? and expires_at > ?");
  const insert = database.prepare(
    `insert into records (key, value, expires_at) values (?, ?, ?) on conflict (key) do update
       set value = excluded.value, expires_at = excluded.expires_at where expires_at <= ?`,
  );
  const update = database.prepare(
    `update records set value = ?, expires_at = ? where key = ? and value = ? and expires_at > ?`,
  );
  return {
    get: (key) => read.get(key, Date.now())?.value,
    compareAndSet(key, expected, next, ttlMs) {
      const now = Date.now();
      const { changes } =
        expected === null
          ? insert.run(key, next, now + ttlMs, now)
          : update.run(next, now + ttlMs, key, expected, now);
      return changes === 1;
    },
  };
}
