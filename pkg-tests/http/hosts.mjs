// One small application in every framework, each with its own way to limit it.

import { once } from "node:events";
import { createServer } from "node:http";
import { Readable } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import { createAdaptorServer } from "@hono/node-server";
import express5 from "express";
import express4 from "express4";
import fastify from "fastify";
import { Hono } from "hono";
import { expressLimit, fastifyLimit, honoLimit, limitFetch } from "tidegate/http";

/** What is streamed, in pieces with pauses between them. */
export async function* pieces() {
  for (const piece of ["one ", "two ", "three"]) {
    yield Buffer.from(piece);
    await pause(5);
  }
}

/** Starts a server on a port of this machine's choosing, and stops it when the test is over. */
export async function listening(t, server) {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${server.address().port}`;
}

function express(make, errors) {
  return (t, options) => {
    const app = make();
    for (const one of [options].flat()) app.use(expressLimit(one));
    app.get("/", (_, response) => response.send("hello"));
    app.get("/fails", () => {
      throw new Error("handler");
    });
    app.post("/echo", (request, response) => request.pipe(response));
    app.get("/stream", (_, response) => Readable.from(pieces()).pipe(response));
    app.use((error, _request, response, _next) => {
      errors.push(error);
      response.status(500).send("failed");
    });
    return listening(t, createServer(app));
  };
}

/** A plain server, with the middleware of Express and nothing else. */
function connect(errors) {
  return (t, options) => {
    const limits = [options].flat().map((one) => expressLimit(one));
    const server = createServer((request, response) => {
      const fail = (error) => {
        errors.push(error);
        response.statusCode = 500;
        response.end("failed");
      };
      const run = ([first, ...rest]) => {
        if (first === undefined) return answer(request, response, fail);
        first(request, response, (error) => (error === undefined ? run(rest) : fail(error)));
      };
      run(limits);
    });
    return listening(t, server);
  };
}

function answer(request, response, fail) {
  const { pathname } = new URL(request.url, "http://localhost");
  if (pathname === "/fails") fail(new Error("handler"));
  else if (pathname === "/echo") request.pipe(response);
  else if (pathname === "/stream") Readable.from(pieces()).pipe(response);
  else response.end("hello");
}

async function fastifyHost(t, options, errors) {
  const app = fastify();
  for (const one of [options].flat()) await app.register(fastifyLimit, one);
  app.setErrorHandler((error, _, reply) => {
    errors.push(error);
    return reply.code(500).send("failed");
  });
  app.addContentTypeParser("*", (_request, payload, done) => done(null, payload));
  app.get("/", async () => "hello");
  app.get("/fails", async () => {
    throw new Error("handler");
  });
  app.post("/echo", async (request) => request.body);
  app.get("/stream", async () => Readable.from(pieces()));
  t.after(() => app.close());
  return app.listen({ port: 0, host: "127.0.0.1" });
}

const respond = (body, init) => new Response(body, init);
const streamed = () => respond(Readable.toWeb(Readable.from(pieces())));

function hono(t, options, errors) {
  const app = new Hono();
  for (const one of [options].flat()) app.use(honoLimit(one));
  app.get("/", (c) => c.text("hello"));
  app.get("/fails", () => {
    throw new Error("handler");
  });
  app.post("/echo", (c) => respond(c.req.raw.body));
  app.get("/stream", streamed);
  app.onError((error, c) => {
    errors.push(error);
    return c.text("failed", 500);
  });
  return listening(t, createAdaptorServer(app));
}

/** Requests and responses only, on Node's server by an adapter. */
function fetchStyle(t, options, errors) {
  // A Request has no address: the adapter's is handed on, as a proxy would.
  const limits = [options].flat().map((one) => limitFetch({ trustProxy: 1, ...one }));
  const handle = async (request) => {
    const { pathname } = new URL(request.url);
    if (pathname === "/fails") throw new Error("handler");
    if (pathname === "/echo") return respond(request.body);
    return pathname === "/stream" ? streamed() : respond("hello");
  };
  const fetch = async (request, { incoming }) => {
    if (!request.headers.has("x-forwarded-for")) {
      request.headers.set("x-forwarded-for", incoming.socket.remoteAddress);
    }
    try {
      const added = new Headers();
      for (const limit of limits) {
        const { response, headers } = await limit(request);
        if (response !== null) return response;
        for (const [name, value] of Object.entries(headers)) added.append(name, value);
      }
      const response = await handle(request);
      for (const [name, value] of added) response.headers.append(name, value);
      return response;
    } catch (error) {
      errors.push(error);
      return respond("failed", { status: 500 });
    }
  };
  return listening(t, createAdaptorServer({ fetch }));
}

/** Each starts the application and answers its address; what its handlers and limits throw is kept in `errors`. */
export const hosts = {
  "express 5": (t, options, errors) => express(express5, errors)(t, options),
  "express 4": (t, options, errors) => express(express4, errors)(t, options),
  "node:http": (t, options, errors) => connect(errors)(t, options),
  fastify: fastifyHost,
  hono,
  limitFetch: fetchStyle,
};
