import { join } from "node:path";
import { after, describe, test } from "node:test";
import { storeFrom } from "tidegate";
import { storeConformance } from "tidegate/conformance";
import { databaseDirectory, openSqlite, remove } from "./databases.mjs";
import { raceTests } from "./racers.mjs";
import { sqliteStore } from "./stores/sqlite.mjs";

const directory = databaseDirectory();
const file = join(directory, "records.db");
const database = openSqlite(file);

after(() => {
  database.close();
  remove(directory);
});

describe("SQLite", () => {
  storeConformance(test, () => storeFrom(sqliteStore(database)));
});

describe("SQLite, shared", () => {
  raceTests("sqlite", () => file);
});
