// The frameworks' own types take what we give them. Never run.

import express from "express";
import { fastify } from "fastify";
import { Hono } from "hono";
import { expressLimit, fastifyLimit, honoLimit, limitFetch } from "tidegate/http";

const limit = { limit: 10, window: "1m" };

express().use(
  expressLimit({
    limit,
    key: (request: express.Request) => String(request.ip),
    refuse: (_decision, _request, response: express.Response) => response.send("slow down"),
  }),
);

const app = fastify();
app.register(fastifyLimit, { limit, headers: "both" });
app.get("/", { config: { tidegate: false } as object }, async () => "");

new Hono().use(honoLimit({ limit, refuse: ({ retryAfterMs }, c) => c.json({ retryAfterMs }) }));

export const answer = async (request: Request): Promise<Response> => {
  const { response, headers } = await limitFetch({ limit, trustProxy: 1 })(request);
  return response ?? new Response("hello", { headers });
};
