// A table of PostgreSQL, by its own clock: each conditional write is one statement.

const schema = `create table if not exists records
  (key text primary key, value text not null, expires_at timestamptz not null)`;
const expiry = "clock_timestamp() + $3 * interval '1 ms'";

export const prepareTable = (pool) => pool.query(schema);

/**
 * @param pool of the package pg
 * @returns {import("tidegate").CasAdapter}
 */
export function postgresStore(pool) {
  return {
    async get(key) {
      const { rows } = await pool.query({
        name: "get",
        text: "select value from records where key = $1 and expires_at > clock_timestamp()",
        values: [key],
      });
      return rows[0]?.value;
    },
    async compareAndSet(key, expected, next, ttlMs) {
      const write =
        expected === null
          ? {
              name: "insert",
              text: `insert into records values ($1, $2, ${expiry}) on conflict (key) do update
                set value = excluded.value, expires_at = excluded.expires_at
                where records.expires_at <= clock_timestamp()`,
              values: [key, next, ttlMs],
            }
          : {
              name: "update",
              text: `update records set value = $2, expires_at = ${expiry}
                where key = $1 and value = $4 and expires_at > clock_timestamp()`,
              values: [key, next, ttlMs, expected],
            };
      return (await pool.query(write)).rowCount === 1;
    },
    async now() {
      const { rows } = await pool.query({
        name: "now",
        text: "select extract(epoch from clock_timestamp())::float8 * 1000 as ms",
      });
      return rows[0].ms;
    },
  };
}
