// What a KV binding of workerd asks over HTTP, answered by a FakeKv.

import { once } from "node:events";
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { makeDisk } from "../worker/served.mjs";
import { FakeKv } from "./fake-kv.mjs";

/** Serves one location of a KV. `bindings` and `services` are for startWorker. */
export async function serveKv(name = "KV") {
  const kv = new FakeKv();
  const namespace = kv.location();
  const server = createServer(async (request, response) => {
    try {
      const value = await answer(namespace, request, await text(request));
      response.writeHead(value === null ? 404 : 200).end(value);
    } catch (error) {
      const [, status = 500, reason] = /failed: (\d+) (.*)/.exec(error.message) ?? [];
      response.writeHead(Number(status), reason).end();
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = `127.0.0.1:${server.address().port}`;
  return {
    kv,
    bindings: [`(name = "${name}", kvNamespace = "kv")`],
    services: [`(name = "kv", external = (address = "${address}", http = ()))`],
    stop() {
      server.close();
      server.closeAllConnections();
    },
  };
}

function answer(namespace, { method, url }, body) {
  const { pathname, searchParams } = new URL(url, "http://kv");
  const key = decodeURIComponent(pathname.slice(1));
  if (method === "GET") return namespace.get(key);
  const ttl = searchParams.get("expiration_ttl");
  return namespace.put(key, body, { expirationTtl: ttl === null ? undefined : Number(ttl) });
}

/** What binds objects of a Worker's own TidegateShard, on a disk that goes with the tests, beside what is there already. */
export function withObjects({ bindings, services }) {
  const disk = makeDisk();
  process.once("exit", () => disk.remove());
  const path = JSON.stringify(disk.path);
  return {
    bindings: [...bindings, '(name = "TIDEGATE_SHARD", durableObjectNamespace = "TidegateShard")'],
    services: [...services, `(name = "disk", disk = (path = ${path}, writable = true))`],
    config: `durableObjectNamespaces = [(className = "TidegateShard", uniqueKey = "tidegate", enableSql = true)], durableObjectStorage = (localDisk = "disk")`,
  };
}
