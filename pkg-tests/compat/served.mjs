import { once } from "node:events";

/** Starts a server on a port of this machine's choosing, and stops it when the test is over. */
export async function served(t, server) {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections?.();
    server.close();
  });
  return `http://127.0.0.1:${server.address().port}`;
}

/** The statuses of that many requests, one after the other. */
export async function statuses(url, times, init) {
  const seen = [];
  for (let request = 0; request < times; request += 1) {
    const response = await fetch(url, init);
    await response.arrayBuffer();
    seen.push(response.status);
  }
  return seen;
}
