// Random batches in the wire's words, the same ones for the same seed.

/** Random whole numbers below a bound. */
export function randomFrom(seed) {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let bits = Math.imul(state ^ (state >>> 15), 1 | state);
    bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits;
    return Math.floor((((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32) * below);
  };
}

const LIMITS = [
  "default=b,1,1000,10",
  "default=b,7,60000,3",
  "day=f,20,86400000",
  "m=s,12,60000",
  "burst=b,5,2000,20|day=f,30,86400000",
];

/** One operation, of which few make no sense where they are. */
function wordsOf(random) {
  const one = (list) => list[random(list.length)];
  const [cost, limits, tag] = [1 + random(4), one(LIMITS), `t${random(3)}`];
  const delta = `${random(3)},${random(5)},${random(4)},0`;
  const payload = one(["", "p1", "p2"]);
  return {
    l: [
      `C;${cost};${limits}`,
      `C;${cost};${limits}`,
      `P;${cost};${limits}`,
      `R;${cost};${limits}`,
      `B;${1 + random(100_000)}`,
      "U;",
      `X;;${limits}`,
      `V;${cost};${LIMITS[0]};${random(9)}`,
      `A;${cost};${LIMITS[2]};${delta}`,
      `Y;;${LIMITS[0]};${delta}`,
    ],
    m: [
      `F;${1 + random(90_000)}`,
      `S;${1 + random(90_000)}`,
      "L;",
      `K;${tag};${1 + random(30_000)};${payload}`,
      `W;${tag};${1 + random(30_000)};${payload}`,
      `D;${tag};${1 + random(90_000)};${payload};${one(["", '{"a":"\\u00e9;|"}', "null"])}`,
      `E;${tag}`,
      "G;",
    ],
    b: [
      `O;t;${1 + random(5)};60000;${random(2) * 90_000};${cost};${one(["", "n1", "n2"])}`,
      `O;s;${1 + random(5)};60000;0;${cost};`,
    ],
  };
}

/** A batch for a deployment of one shard. */
export function batchOf(random) {
  const lines = Array.from({ length: 1 + random(20) }, () => {
    const kind = "lmb"[random(3)];
    // Now and then of another kind than what the key holds.
    const words = wordsOf(random)[random(25) === 0 ? "lmb"[random(3)] : kind];
    return `tg:${kind}:${random(6)}\t${words[random(words.length)]}`;
  });
  if (random(40) === 0) lines.push(["", "tg:l:1", "tg:l:1\tC;0;", "tg:l:1\t?;"][random(4)]);
  return ["1;1", ...lines].join("\n");
}
