// Draws nanoseconds per call over the number of keys, both on a logarithmic scale, as SVG.

const WIDTH = 760;
const HEIGHT = 420;
const MARGIN = { left: 70, right: 230, top: 40, bottom: 55 };
const COLOURS = ["#888888", "#0072b2", "#d55e00", "#009e73", "#cc79a7"];

const attributes = (of) =>
  Object.entries(of)
    .map(([name, value]) => ` ${name}="${value}"`)
    .join("");
const element = (name, of, inside = "") => `<${name}${attributes(of)}>${inside}</${name}>`;
const text = (x, y, words, of = {}) => element("text", { x, y, ...of }, words);
const spaced = (number) => number.toLocaleString("en").replaceAll(",", "\u00a0");
const round = (number) => Math.round(number * 10) / 10;

/** A logarithmic scale from one range onto another. */
function scale([from, to], [start, end]) {
  const part = (value) => Math.log(value / from) / Math.log(to / from);
  return (value) => round(start + part(value) * (end - start));
}

const powersOfTen = (from, to) => {
  const first = Math.ceil(Math.log10(from));
  return Array.from(
    { length: Math.floor(Math.log10(to)) - first + 1 },
    (_, at) => 10 ** (first + at),
  );
};

/** Whole decades around all values. */
function decades(values) {
  const power = (round, value) => 10 ** round(Math.log10(value));
  return [power(Math.floor, Math.min(...values)), power(Math.ceil, Math.max(...values))];
}

/** `series`: a name and its points `[keys, ns]` each. */
export function curve(title, series) {
  const points = series.flatMap((one) => one.points);
  const counts = points.map(([count]) => count);
  const spans = decades(points.map(([, ns]) => ns));
  const x = scale([Math.min(...counts), Math.max(...counts)], [MARGIN.left, WIDTH - MARGIN.right]);
  const y = scale(spans, [HEIGHT - MARGIN.bottom, MARGIN.top]);
  const grid = { stroke: "#dddddd", "stroke-width": 1 };
  const across = powersOfTen(...spans).map(
    (ns) =>
      element("line", {
        x1: MARGIN.left,
        x2: WIDTH - MARGIN.right,
        y1: y(ns),
        y2: y(ns),
        ...grid,
      }) + text(MARGIN.left - 8, y(ns) + 4, `${spaced(ns)} ns`, { "text-anchor": "end" }),
  );
  const down = powersOfTen(Math.min(...counts), Math.max(...counts)).map((count) =>
    text(x(count), HEIGHT - MARGIN.bottom + 20, spaced(count), {
      "text-anchor": "middle",
    }),
  );
  const lines = series.map((one, at) => line(one, COLOURS[at % COLOURS.length], x, y));
  const words = [
    text(MARGIN.left, 22, title, { "font-weight": "bold" }),
    text((x(Math.min(...counts)) + x(Math.max(...counts))) / 2, HEIGHT - 12, "keys", {
      "text-anchor": "middle",
    }),
  ];
  const paper = element("rect", { width: WIDTH, height: HEIGHT, fill: "#ffffff" });
  const drawn = [element("title", {}, title), paper, ...across, ...down, ...lines, ...words].join(
    "\n",
  );
  const frame = {
    xmlns: "http://www.w3.org/2000/svg",
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    "font-family": "sans-serif",
    "font-size": 13,
  };
  return `${element("svg", frame, `\n${drawn}\n`)}\n`;
}

function line({ name, points }, colour, x, y) {
  const places = points.map(([count, ns]) => `${x(count)},${y(ns)}`);
  const [lastCount, lastNs] = points.at(-1);
  return [
    element("polyline", {
      points: places.join(" "),
      fill: "none",
      stroke: colour,
      "stroke-width": 2,
    }),
    ...places.map((place) => {
      const [cx, cy] = place.split(",");
      return element("circle", { cx, cy, r: 3, fill: colour });
    }),
    text(x(lastCount) + 10, y(lastNs) + 4, name, { fill: colour }),
  ].join("");
}
