// Keeps a number and its unit on one line.
const SPACE = "\u00a0";

const units = [
  [3_600_000, "h"],
  [60_000, "min"],
  [1_000, "s"],
  [1, "ms"],
];

/** A duration of the configuration: 2500 is "2.5 s", 600000 is "10 min". */
function duration(ms) {
  const [size, unit] = units.find(([size]) => ms >= size);
  return `${Number((ms / size).toFixed(2))}${SPACE}${unit}`;
}

/** A wait that is running, rounded up so that it never ends early; in whole seconds unless `smooth`. */
export function wait(ms, smooth) {
  const seconds = smooth ? (Math.ceil(ms / 100) / 10).toFixed(1) : Math.ceil(ms / 1_000);
  return `${seconds}${SPACE}s`;
}

/** When a refused message fits: "in 1.4 s", and in the end "now". */
export function countdown(ms, smooth) {
  return ms > 0 ? `in ${wait(ms, smooth)}` : "now";
}

const limits = {
  "leaky-bucket": ({ limit, window }) =>
    `Leaky bucket: holds ${limit}, leaks one per ${duration(window / limit)}.`,
  "fixed-window": ({ limit, window }) =>
    `Fixed window: ${limit} per ${duration(window)}, from the first.`,
};

/** What a rule of the table says. */
export function describe({ limit, dedup }) {
  const text = limits[limit.algorithm](limit);
  return dedup ? `${text}\nAn id is remembered for ${duration(dedup.ttl)}.` : text;
}

/** What time alone will bring to a bucket. */
export function ahead(bucket, now, smooth) {
  const emptyIn = bucket.emptyIn(now);
  if (emptyIn === 0) return bucket.leaks ? "The bucket is empty." : "No window is open.";
  if (!bucket.leaks) return `The window ends in ${wait(emptyIn, smooth)}.`;
  return `One leaks out in ${wait(bucket.nextIn(now), smooth)}, all in ${wait(emptyIn, smooth)}.`;
}

/** "4 accepted, 6 refused" */
export function tally(groups) {
  return [...groups].map(([kind, answers]) => `${answers.length} ${kind}`).join(", ");
}

/** Writes text where it is new: a frame that changes nothing costs no layout. */
export function say(element, text) {
  if (element.textContent !== String(text)) element.textContent = text;
}
