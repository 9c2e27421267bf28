// How does the game stand, and how did it go? Bars of the value and the graph of all values: of two players who share a
// zero sum for the first one, else for each player in the player's color.

import { byId, draw, make } from "./dom.js";
import { colorOf, upper } from "./seats.js";
import { told } from "./values.js";

/** Shows the value for each player, from -1 to 1, if it is known. Of a zero sum one bar tells both. */
export function showBars(values, names, isZeroSum) {
  const colors = names.map((name, player) => colorOf(name, player, isZeroSum));
  const [isKnown, rivals] = [values !== null, isZeroSum && !colors.includes("")];
  const shown = isZeroSum ? names.slice(0, 1) : names;
  const each = shown.map((_, player) => told(values?.[player] ?? null));
  const rows = shown.map((name, player) => {
    const fill = make("span", { className: `fill ${isZeroSum && !rivals ? "" : colors[player]}` });
    fill.style.width = `${50 * (1 + (values?.[player] ?? -1))}%`;
    const track = make("span", { className: `track ${isKnown && rivals ? colors[1] : ""}` }, fill);
    track.append(make("span", { className: "told" }, each[player]));
    return make("div", {}, make("span", {}, upper(name)), track, ...(isZeroSum ? [make("span", {}, upper(names[1]))] : []));
  });
  byId("bars").replaceChildren(...rows);
  const said = each.map((value, player) => `${value} for ${names[player]}`).join(", ");
  byId("bars").setAttribute("aria-label", `Values: ${isKnown ? said : "not known"}`);
}

/** Shows the values of an adviser. */
export function showGraph(game, adviser, names, onChoose) {
  const [layer, line, { current, isZeroSum }] = [byId("graph"), game.line(), game];
  const [width, height, side] = [Math.max(200, layer.clientWidth), 120, 40];
  layer.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const last = Math.max(10, line.length - 1);
  const x = (ply) => side + ((width - side - 8) * ply) / last;
  const y = (value) => height / 2 - value * (height / 2 - 12);
  const parts = [1, 0, -1].flatMap((value) => [
    draw("line", { x1: side, x2: width - 8, y1: y(value), y2: y(value), class: value === 0 ? "axis zero" : "axis" }),
    draw("text", { x: side - 6, y: y(value) + 4, "text-anchor": "end", class: "tick" }, told(value, 0)),
  ]);
  const shown = isZeroSum ? names.slice(0, 1) : names;
  const lines = shown.map((_, player) =>
    line.flatMap((position) => {
      const value = position.values(adviser)?.[player];
      return value === undefined ? [] : [{ value, cx: x(position.ply), cy: y(value) }];
    }),
  );
  for (const [player, known] of lines.entries()) {
    const whose = isZeroSum ? "" : ` ${colorOf(names[player], player, false)}`;
    const points = known.map(({ cx, cy }) => `${cx},${cy}`);
    parts.push(draw("polyline", { points: points.join(" "), class: `values${whose}` }));
    parts.push(...known.map(({ cx, cy }) => draw("circle", { cx, cy, r: 2.5, class: `value${whose}` })));
  }
  parts.push(draw("line", { x1: x(current.ply), x2: x(current.ply), y1: 6, y2: height - 6, class: "now" }));
  layer.replaceChildren(...parts);
  const where = `the board is at move ${current.ply} of ${line.length - 1}`;
  const said = lines.map((known, player) => described(known.map(({ value }) => value), names[player]));
  layer.setAttribute("aria-label", `${said.join("; ")}; ${where}`);
  byId("graph_title").textContent = `Value for ${shown.join(", ")}, by move`;
  layer.onclick = (event) => {
    const box = layer.getBoundingClientRect();
    const share = (((event.clientX - box.x) * width) / box.width - side) / (width - side - 8);
    onChoose(line[Math.min(line.length - 1, Math.max(0, Math.round(share * last)))]);
  };
}

function described(values, name) {
  if (values.length === 0) return "Graph of the values: none is known yet";
  return `Graph of ${values.length} values for ${name}, from ${told(Math.min(...values))} to ${told(Math.max(...values))}`;
}
