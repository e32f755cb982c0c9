// Thousands of clients in one process. Told to, all of them connect, say something each, and are gone at once.

import { RawClient } from "./raw-client.mjs";

const [url, localAddress, count] = process.argv.slice(2);
const AT_ONCE = 250;

/** Every other one is somebody and says the same each time; the rest are nobody but their sockets. */
async function visit(number) {
  const isNamed = number % 2 === 0;
  const auth = { user: `${localAddress}-${number}`, isNamed };
  const client = new RawClient(url, auth, { localAddress });
  await client.connected;
  const answer = await (isNamed ? client.ask("order", { mid: "only" }) : client.ask("chat", {}));
  return { client, ok: answer.ok };
}

async function storm() {
  const visits = [];
  for (let first = 0; first < count; first += AT_ONCE) {
    const size = Math.min(AT_ONCE, count - first);
    const wave = Array.from({ length: size }, (_, at) => visit(first + at));
    visits.push(...(await Promise.all(wave)));
  }
  for (const { client } of visits) client.drop();
  await Promise.all(visits.map(({ client }) => client.closed));
  return visits.filter(({ ok }) => ok).length;
}

process.on("message", async () => process.send(await storm()));
process.on("disconnect", () => process.exit());
process.send("ready");
