import { after, before, describe, test } from "node:test";
import { storeFrom } from "tidegate";
import { storeConformance } from "tidegate/conformance";
import { databaseDirectory, openPostgres, remove, startPostgres } from "./databases.mjs";
import { raceTests } from "./racers.mjs";
import { postgresStore, prepareTable } from "./stores/postgres.mjs";

const directory = databaseDirectory();
let server;
let pool;

before(async () => {
  server = await startPostgres(directory);
  pool = openPostgres(directory);
  await prepareTable(pool);
});

after(async () => {
  await pool?.end();
  await server?.stop();
  remove(directory);
});

describe("PostgreSQL", () => {
  storeConformance(test, () => storeFrom(postgresStore(pool)));
});

describe("PostgreSQL, shared", () => {
  raceTests("postgres", () => directory);
});
