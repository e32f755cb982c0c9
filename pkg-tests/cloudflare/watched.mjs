// A shard's class with what tests want to see of it and do to it.

/** The paths at which objects were asked. */
export const asked = [];
let fault;

/** From now on objects throw, or hang, or can set no alarm; undefined: none of it. */
export function setFault(named) {
  fault = named;
}

/** Storage in which one row cannot be written, and alarms cannot be set where that is the fault. */
function fragile(storage) {
  const sql = {
    get databaseSize() {
      return storage.sql.databaseSize;
    },
    exec(query, ...values) {
      if (query.startsWith("INSERT") && values[0] === "tg:l:broken") throw new Error("no disk");
      return storage.sql.exec(query, ...values);
    },
  };
  return {
    sql,
    transactionSync: (body) => storage.transactionSync(body),
    getAlarm: () => storage.getAlarm(),
    setAlarm: async (at) => {
      if (fault === "no alarms") throw new Error("storage is busy");
      await storage.setAlarm(at);
    },
    deleteAll: () => storage.deleteAll(),
  };
}

export const watched = (Shard) =>
  class {
    constructor(state, env) {
      this.storage = state.storage;
      this.shard = new Shard({ storage: fragile(state.storage) }, env);
    }

    async fetch(request) {
      const { pathname } = new URL(request.url);
      if (pathname === "/told") return Response.json(await this.told());
      if (pathname === "/alarm") return Response.json((await this.shard.alarm()) ?? null);
      asked.push(pathname);
      if (fault === "throws") throw new Error("the object is overloaded");
      if (fault === "hangs") await new Promise((resolve) => setTimeout(resolve, 10_000));
      return this.shard.fetch(request);
    }

    alarm() {
      return this.shard.alarm();
    }

    /** Its rows, or that it has no table, and its alarm. */
    async told() {
      const { sql } = this.storage;
      const isMade =
        sql.exec("SELECT 1 FROM sqlite_master WHERE name = 'records'").toArray().length > 0;
      const all = "SELECT key, record, over_at FROM records ORDER BY key";
      const rows = isMade ? sql.exec(all).toArray() : null;
      return { rows, alarm: await this.storage.getAlarm() };
    }
  };
