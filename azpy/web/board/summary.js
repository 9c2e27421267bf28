// How well did each side play? What its moves lost, in the beginning, the middle and the end of the game.

import { byId, make } from "./dom.js";
import { upper } from "./sides.js";
import { judged, MARKS, toldLoss } from "./values.js";

const PHASES = 3;

/** @param {import("./game.js").Position[]} line @param {string} adviser @param {number} least visits of a search that
 * is not short @param {string[]} names of the players */
export function showSummary(line, adviser, least, names) {
  const losses = line.map((one) => one.loss(adviser, least));
  const rows = names.map((name, player) => {
    const lost = losses.map((loss, ply) => (line[ply].mover === player ? loss : null));
    const marks = lost.map((loss) => judged(loss)?.mark);
    const counts = MARKS.map((mark) => `${marks.filter((one) => one === mark).length}`);
    const phases = Array.from({ length: PHASES }, (_, phase) => {
      const [from, to] = [phase, phase + 1].map((edge) => 1 + Math.round(((line.length - 1) * edge) / PHASES));
      const known = lost.slice(from, to).filter((loss) => loss !== null);
      const sum = known.reduce((all, loss) => all + Math.max(0, loss), 0);
      return known.length === 0 ? "–" : toldLoss(sum / known.length);
    });
    const cells = [...counts, ...phases].map((text) => make("td", { className: "number" }, text));
    return make("tr", {}, make("th", { scope: "row" }, upper(name)), ...cells);
  });
  byId("summary_rows").replaceChildren(...rows);
  byId("summary").hidden = losses.every((loss) => loss === null);
}
