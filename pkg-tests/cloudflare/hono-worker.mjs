// A small Worker as somebody would deploy it: a deny list, a soft limit and hints of webhooks in KV, an exact limit
// where money is.

import { env } from "cloudflare:workers";
import { Hono } from "hono";
import { Deduplicator, ipKey, Limiter } from "tidegate";
import { DurableObjectStore, KvStore } from "tidegate/cloudflare";
import { honoLimit } from "tidegate/http";

export { TidegateShard } from "tidegate/cloudflare";

const exact = new DurableObjectStore(env.TIDEGATE_SHARD);

// The first read of a key at a location comes from far away.
const soft = { store: new KvStore(env.KV), bestEffort: true, timeout: "2s" };
const denied = new Limiter({
  ...soft,
  prefix: "deny",
  limit: { limit: 1, window: "1m" },
  onStoreError: "allow",
});
const webhooks = new Deduplicator({ ...soft, prefix: "webhooks", ttl: "1d" });
const limit = { algorithm: "fixed-window", limit: 20, window: "1h" };
const payments = { algorithm: "fixed-window", limit: 3, window: "1h" };

const app = new Hono();

app.use(async (c, next) => {
  const { reason } = await denied.peek(ipKey(c.req.header("cf-connecting-ip")));
  if (reason === "blocked") return c.text("denied", 403);
  await next();
});

app.use("/api/*", honoLimit({ ...soft, limit, trustProxy: "cloudflare" }));
app.get("/api/hello", (c) => c.text("hello"));

app.use(
  "/pay",
  honoLimit({
    store: exact,
    timeout: "2s",
    prefix: "pay",
    limit: payments,
    trustProxy: "cloudflare",
  }),
);
app.post("/pay", (c) => c.text("paid"));

app.post("/webhooks/:id", async (c) => {
  const isNew = await webhooks.first(c.req.param("id"));
  return c.text(isNew ? "new" : "seen");
});

app.use("/admin/*", async (c, next) => {
  if (c.req.header("authorization") !== `Bearer ${env.ADMIN_TOKEN}`) return c.text("no", 401);
  await next();
});
app.put("/admin/denied/:ip", async (c) => {
  await denied.block(ipKey(c.req.param("ip")), "1d");
  return c.text("denied");
});
app.delete("/admin/denied/:ip", async (c) => {
  await denied.unblock(ipKey(c.req.param("ip")));
  return c.text("let in");
});

export default app;
