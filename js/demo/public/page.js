import { rules } from "/rules.mjs";
import { io } from "/socket.io/socket.io.esm.min.js";
import { Card } from "./card.js";
import { Journal } from "./journal.js";
import { Nodes } from "./nodes.js";
import { say } from "./words.js";

const ANSWER_TIMEOUT_MS = 10_000;
const BURST = 10;

/** The ids that a press sends, given the id that was accepted last, and what the log calls it. */
const actions = {
  single: { ids: () => [newId()], title: ([id]) => `one message, id ${id}` },
  burst: { ids: () => Array.from({ length: BURST }, newId), title: () => `burst of ${BURST}` },
  twice: {
    ids: () => Array(2).fill(newId()),
    title: ([id]) => `one message delivered twice, id ${id}`,
  },
  repeat: { ids: (last) => [last], title: ([id]) => `the last message again, id ${id}` },
};

// Kept over a reload, and so are its budgets.
sessionStorage.guest ??= `guest-${newId()}`;
const auth = { user: sessionStorage.guest };
const socket = io({ auth, transports: ["websocket", "polling"] });
const nodes = new Nodes(document.getElementById("nodes"), auth);
const calm = matchMedia("(prefers-reduced-motion: reduce)");
const journal = new Journal(document.getElementById("journal"));
const cards = new Map(
  Object.entries(rules).map(([event, rule]) => [event, new Card(event, rule, press)]),
);
const accepted = new Map();

document.getElementById("cards").append(...[...cards.values()].map((card) => card.element));

async function press(event, action) {
  const ids = actions[action].ids(accepted.get(event)?.mid);
  const answers = await Promise.all(ids.map((mid) => deliver(event, mid)));
  const groups = Map.groupBy(answers, ({ kind }) => kind);
  cards.get(event).answered(groups);
  journal.add(event, actions[action].title(ids), groups);
  wake();
}

async function deliver(event, mid) {
  const ack = await (nodes.turn() ?? socket)
    .timeout(ANSWER_TIMEOUT_MS)
    .emitWithAck(event, { mid })
    .catch(() => undefined);
  return { kind: kindOf(event, mid, ack), ack, at: performance.now() };
}

/** A duplicate is known by its acknowledgement: it is the first one's, number, time and all. */
function kindOf(event, mid, ack) {
  if (!ack) return "lost";
  if (!ack.ok) return "refused";
  const text = JSON.stringify(ack);
  const last = accepted.get(event);
  if (last?.mid === mid && last.text === text) return "duplicate";
  accepted.set(event, { mid, text });
  nodes.handled(ack.node);
  return "accepted";
}

function newId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(4)), (byte) =>
    byte.toString(16).padStart(2, "0"),
  ).join("");
}

// Frames are drawn only while time alone changes what they show.
let awake = false;
function wake() {
  if (!awake) requestAnimationFrame(frame);
  awake = true;
}
function frame() {
  const now = performance.now();
  awake = [...cards.values(), journal].map((part) => part.tick(now, !calm.matches)).includes(true);
  if (awake) requestAnimationFrame(frame);
}
wake();

socket.on("budget", (event, decision) => {
  cards.get(event).decided(decision, performance.now());
  wake();
});

socket.on("fleet", (count) => nodes.open(count));
socket.on("alarm", (alarm) => nodes.alarm(alarm));

const connection = document.getElementById("connection");
function connected(state, text) {
  connection.dataset.state = state;
  say(connection, text);
}
socket.on("connect", () => connected("open", "Connected"));
socket.on("disconnect", () => connected("closed", "Disconnected, trying again"));
