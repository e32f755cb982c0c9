import { same } from "./expect.js";
import type { Case, Trial } from "./trial.js";

/** No two of these may ever meet, whatever a database makes of its keys. */
const KEYS: readonly string[] = [
  "key",
  "Key",
  "KEY",
  " key",
  "key ",
  "key  ",
  " ",
  "\t",
  "key\n",
  "\n",
  "key\r",
  "key\0",
  "key\0a",
  "\0",
  "a:b",
  "a::b",
  "a:b:",
  ":",
  "::",
  "a/b",
  "../key",
  "{key}",
  "{}",
  "}{",
  "key*",
  "*",
  "key?",
  "?",
  "[key]",
  "[k]ey",
  "[",
  "^key$",
  ".*",
  "%",
  "_ey",
  "%6Bey",
  "\\",
  "\\0",
  "'",
  "''",
  '"',
  "key'; --",
  "`key`",
  "$1",
  "~",
  "~0",
  "#",
  "|",
  "__proto__",
  "constructor",
  "hasOwnProperty",
  "null",
  "undefined",
  "0",
  "00",
  "-0",
  "1e3",
  "true",
  // With and without a combining accent, and what folds to the same letter elsewhere.
  "\u00e9",
  "e\u0301",
  "e",
  "E",
  "\u00df",
  "ss",
  "\u0130",
  "\u0131",
  "i",
  "\u212a",
  "k",
  "\u{1f30a}",
  "\u200b",
  "\ufeff",
  "\u2028",
  "\u0080",
  "\u00ff",
  "\uffff",
  // Surrogates without a partner, and what they are often replaced with.
  "\ud800",
  "\ud801",
  "\udc00",
  "\udc00\ud800",
  "\ufffd",
  "?",
  "k".repeat(100),
  "k".repeat(199),
  "k".repeat(200),
  "k".repeat(201),
  `${"k".repeat(199)}l`,
  `${"k".repeat(200)}l`,
  "k".repeat(512),
  "k".repeat(513),
  `${"k".repeat(512)}l`,
  "\u00e9".repeat(513),
  "k".repeat(10_000),
  `${"k".repeat(9_999)}l`,
  `l${"k".repeat(9_999)}`,
  "\ud800".repeat(10_000),
];
const DISTINCT = [...new Set(KEYS)];

/** As pairs of a prefix and a key: no two may meet however the parts are joined. */
const PAIRS: readonly [string, string][] = [
  ["a", "b:c"],
  ["a:b", "c"],
  ["a:", "b:c"],
  ["a", ":b:c"],
  ["a:b:c", "c"],
  ["a:b", ":c"],
  ["a:l", "c"],
  ["a", "l:c"],
  ["a:m", "c"],
  ["a", "m:c"],
  ["a/b", "c"],
  ["a", "b/c"],
  ["ab", "c"],
  ["a", "bc"],
  ["a ", "c"],
  ["a", " c"],
  ["A", "c"],
  ["a", "c"],
  ["\ud800", "c"],
  ["\ud801", "c"],
  ["\u00e9", "c"],
  ["__proto__", "c"],
  ["p".repeat(1_000), "c"],
  [`${"p".repeat(999)}q`, "c"],
];

/** Keys are texts: every character of them counts, and none is special. */
export const keyCases: readonly Case[] = [
  { name: "keys of limits never meet", needs: [], body: limitKeys },
  { name: "message ids never meet", needs: [], body: messageIds },
  { name: "identities under watch never meet", needs: ["exact", "records"], body: identities },
  { name: "prefixes and keys never meet", needs: [], body: prefixes },
  {
    name: "limits, ids and identities of one name never meet",
    needs: ["exact", "records"],
    body: kinds,
  },
];

async function limitKeys(trial: Trial): Promise<void> {
  const limit = { algorithm: "fixed-window", limit: 1, window: trial.longMs } as const;
  const limiter = trial.limiter(limit);
  for (const key of DISTINCT) {
    same((await limiter.consume(key)).allowed, true, `the first call on the key ${named(key)}`);
  }
  for (const key of DISTINCT) {
    same((await limiter.consume(key)).allowed, false, `the second call on the key ${named(key)}`);
  }
}

async function messageIds(trial: Trial): Promise<void> {
  const ids = trial.deduplicator();
  for (const id of DISTINCT) same(await ids.first(id), true, `first of the id ${named(id)}`);
  for (const id of DISTINCT) same(await ids.first(id), false, `a second first of ${named(id)}`);
}

async function identities(trial: Trial): Promise<void> {
  const window = 365 * 86_400_000;
  const detector = trial.detector({ threshold: 2, window, trigger: "sliding" });
  for (const identity of DISTINCT) {
    const { count } = await detector.observe(identity);
    same(count, 1, `the first count of ${named(identity)}`);
  }
  for (const identity of DISTINCT) {
    const { fired } = await detector.observe(identity);
    same(fired, true, `whether the second observation of ${named(identity)} fired`);
  }
}

async function prefixes(trial: Trial): Promise<void> {
  const limit = { algorithm: "fixed-window", limit: 1, window: trial.longMs } as const;
  const all = PAIRS.map(([end, key]) => {
    const own = { prefix: trial.prefix + end };
    const title = `the key ${named(key)} of a prefix that ends in ${named(end)}`;
    return { key, title, limiter: trial.limiter(limit, own), ids: trial.deduplicator(own) };
  });
  for (const expected of [true, false]) {
    for (const { key, title, limiter, ids } of all) {
      same((await limiter.consume(key)).allowed, expected, `a call on ${title}`);
      same(await ids.first(key), expected, `first of ${title}`);
    }
  }
}

async function kinds(trial: Trial): Promise<void> {
  const limiter = trial.limiter({ limit: 2, window: trial.longMs });
  const ids = trial.deduplicator();
  const detector = trial.detector({ threshold: 9, window: trial.longMs });
  same((await limiter.consume("name")).remaining, 1, "remaining");
  same(await ids.first("name"), true, "first of an id that is a limit's key too");
  same((await detector.observe("name")).count, 1, "the count of an identity of the same name");
  same((await limiter.consume("name")).remaining, 0, "remaining beside the id and the identity");
  await limiter.reset("name");
  same(await ids.has("name"), true, "whether the id is known after reset of the limit");
  await ids.forget("name");
  same((await detector.observe("name")).count >= 1, true, "the identity after forget of the id");
}

function named(text: string): string {
  const json = JSON.stringify(text);
  return json.length > 60 ? `${json.slice(0, 40)}… (${text.length} characters)` : json;
}
