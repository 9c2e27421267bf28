// How does the game stand, and how did it go? The bar of the value and the graph of all values, for the first player.

import { byId, draw } from "./dom.js";
import { upper } from "./sides.js";
import { told } from "./values.js";

/** @typedef {import("./game.js").Position} Position */

/**
 * @param {number | null} value for the first player, from -1 to 1
 * @param {[string, string]} names of the players
 */
export function showBar(value, names) {
  const bar = byId("bar");
  byId("bar_first").textContent = upper(names[0]);
  byId("bar_second").textContent = upper(names[1]);
  byId("bar_fill").style.width = `${50 * (1 + (value ?? 0))}%`;
  byId("bar_value").textContent = value === null ? "–" : told(value);
  const said = value === null ? "not known" : `${told(value)} for ${names[0]}`;
  bar.setAttribute("aria-label", `Value: ${said}`);
  bar.classList.toggle("unknown", value === null);
}

const BINS = 20;

/** How the visits of a search are spread over the values of its moves. @param {any[]} moves */
export function showHistogram(moves) {
  const known = moves.filter((move) => move.value !== null);
  const bins = Array.from({ length: BINS }, () => 0);
  for (const { value, visits } of known) bins[Math.min(BINS - 1, Math.floor(((value + 1) / 2) * BINS))] += visits;
  const [wide, high, most] = [100 / BINS, 30, Math.max(1, ...bins)];
  const bars = bins.map((visits, index) => {
    const height = (high * visits) / most;
    return draw("rect", { x: index * wide + 0.4, y: high - height, width: wide - 0.8, height, class: "bin" });
  });
  const layer = byId("histogram");
  layer.replaceChildren(draw("line", { x1: 0, x2: 100, y1: high, y2: high, class: "axis zero" }), ...bars);
  const values = known.filter(({ visits }) => visits > 0).map(({ value }) => value);
  const range = values.length === 0 ? "" : `: from ${told(Math.min(...values))} to ${told(Math.max(...values))}`;
  layer.setAttribute("aria-label", `Visits by the value of their move${range}`);
  byId("histogram_low").textContent = told(-1, 0);
  byId("histogram_high").textContent = told(1, 0);
  byId("histogram_figure").hidden = values.length === 0;
}

/** @type {AbortController | null} */
let listening = null;

/**
 * @param {Position[]} line
 * @param {Position} current
 * @param {string} adviser whose values are shown
 * @param {[string, string]} names of the players
 * @param {(position: Position) => void} onChoose
 */
export function showGraph(line, current, adviser, names, onChoose) {
  const layer = byId("graph");
  const [width, height, side] = [Math.max(200, layer.clientWidth), 120, 40];
  layer.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const last = Math.max(10, line.length - 1);
  const x = (/** @type {number} */ ply) => side + ((width - side - 8) * ply) / last;
  const y = (/** @type {number} */ value) => height / 2 - value * (height / 2 - 12);
  const parts = [1, 0, -1].flatMap((value) => [
    draw("line", { x1: side, x2: width - 8, y1: y(value), y2: y(value), class: value === 0 ? "axis zero" : "axis" }),
    draw("text", { x: side - 6, y: y(value) + 4, "text-anchor": "end", class: "tick" }, told(value, 0)),
  ]);
  const known = line.flatMap((position) => {
    const value = position.value(adviser);
    return value === null ? [] : [{ value, cx: x(position.ply), cy: y(value) }];
  });
  const points = known.map(({ cx, cy }) => `${cx},${cy}`);
  parts.push(draw("polyline", { points: points.join(" "), class: "values" }));
  parts.push(...known.map(({ cx, cy }) => draw("circle", { cx, cy, r: 2.5, class: "value" })));
  parts.push(draw("line", { x1: x(current.ply), x2: x(current.ply), y1: 6, y2: height - 6, class: "now" }));
  layer.replaceChildren(...parts);
  const where = `the board is at move ${current.ply} of ${line.length - 1}`;
  layer.setAttribute("aria-label", `${described(known.map(({ value }) => value), names)}; ${where}`);
  byId("graph_title").textContent = `Value for ${names[0]}, by move`;
  listening?.abort();
  listening = new AbortController();
  layer.addEventListener(
    "click",
    (/** @type {MouseEvent} */ event) => {
      const box = layer.getBoundingClientRect();
      const share = (((event.clientX - box.x) * width) / box.width - side) / (width - side - 8);
      onChoose(line[Math.min(line.length - 1, Math.max(0, Math.round(share * last)))]);
    },
    { signal: listening.signal },
  );
}

/** @param {number[]} values @param {[string, string]} names */
function described(values, names) {
  if (values.length === 0) return "Graph of the values: none is known yet";
  const range = `from ${told(Math.min(...values))} to ${told(Math.max(...values))}`;
  return `Graph of ${values.length} values for ${names[0]}, ${range}`;
}
