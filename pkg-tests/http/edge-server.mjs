// A server of Deno or Bun, limited in both ways that they have. Prints its port.

import { Hono } from "hono";
import { honoLimit, limitFetch } from "tidegate/http";

const limit = { limit: 2, window: "1m" };
const check = limitFetch({ limit, key: (request) => request.headers.get("x-user") });

async function plain(request) {
  const { response, headers } = await check(request);
  // The body goes back as it comes.
  return response ?? new Response(request.body, { headers });
}

const app = new Hono();
app.use("/hono", honoLimit({ limit }));
app.use("/socket", honoLimit({ limit }));
app.get("/hono", (c) => c.text("hello"));
app.get("/socket", (c) => Deno.upgradeWebSocket(c.req.raw).response);

const hostname = "127.0.0.1";
const fetch = (request, peer) =>
  new URL(request.url).pathname === "/" ? plain(request) : app.fetch(request, peer);

if (globalThis.Deno) {
  Deno.serve({ hostname, port: 0, onListen: ({ port }) => console.log(port) }, fetch);
} else {
  console.log(Bun.serve({ hostname, port: 0, fetch }).port);
}
