// The databases that the host stores stand on: a file, and a server that lives as long as the test.

import { spawn } from "node:child_process";
import { chownSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import pg from "pg";
import { findPostgresql, sqliteHome } from "../../js/tools/setup.mjs";
import { capture, run } from "../../js/tools/shell.mjs";

/** A new directory for a database. */
export function databaseDirectory() {
  return mkdtempSync(join(tmpdir(), "tidegate-db-"));
}

export function remove(directory) {
  rmSync(directory, { recursive: true, force: true });
}

/** Opens a file of SQLite with what this Node.js has for it. */
export function openSqlite(file) {
  const builtin = process.getBuiltinModule("node:sqlite");
  if (builtin) return new builtin.DatabaseSync(file);
  const Database = createRequire(join(sqliteHome, "node_modules/"))("better-sqlite3");
  return new Database(file);
}

/** A pool of connections to the server whose socket is in that directory. */
export function openPostgres(socket, max = 4) {
  const pool = new pg.Pool({ host: socket, user: "postgres", database: "postgres", max });
  // A server that stops cuts off idle connections; the pool makes new ones when they are asked for.
  pool.on("error", () => {});
  return pool;
}

/** Starts a server of its own in a directory, reachable by a socket there and by nothing else. */
export async function startPostgres(directory) {
  const bin = findPostgresql();
  const data = join(directory, "data");
  mkdirSync(data);
  const as = asServerUser([directory, data]);

  const init = ["--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-sync", "-D", data];
  await run("setpriv", [...as, join(bin, "initdb"), ...init], { cwd: directory });

  const settings = { listen_addresses: "", unix_socket_directories: directory, fsync: "off" };
  const options = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  // A test that is killed takes its server along.
  const args = [...as, "--pdeathsig=INT", join(bin, "postgres"), "-D", data, ...options];
  const server = spawn("setpriv", args, { cwd: directory, stdio: "ignore" });
  const ended = new Promise((resolve) => server.once("exit", resolve));
  await answers(directory, server);
  return {
    async stop() {
      // Asked to be quick about it: the connections are cut off, and the data is not needed again.
      server.kill("SIGINT");
      await ended;
    },
  };
}

/** PostgreSQL does not run as root: then it gets these paths, and the user that Debian's package made for it. */
function asServerUser(paths) {
  if (process.getuid() !== 0) return [];
  const [uid, gid] = ["-u", "-g"].map((flag) => Number(capture("id", [flag, "postgres"])));
  for (const path of paths) chownSync(path, uid, gid);
  return [`--reuid=${uid}`, `--regid=${gid}`, "--clear-groups"];
}

async function answers(socket, server) {
  for (let attempt = 0; attempt < 300; attempt += 1) {
    const client = new pg.Client({ host: socket, user: "postgres", database: "postgres" });
    try {
      await client.connect();
      await client.end();
      return;
    } catch (error) {
      if (server.exitCode !== null) throw new Error(`postgres ended: ${error.message}`);
      await pause(100);
    }
  }
  throw new Error("postgres does not answer");
}
