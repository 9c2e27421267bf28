// How well did each side play? What its moves lost, in the beginning, the middle and the end of the game.

import { byId, make } from "./dom.js";
import { upper } from "./sides.js";
import { judged, MARKS, toldLoss } from "./values.js";

const PHASES = 3;

/**
 * @param {import("./game.js").Position[]} line
 * @param {string} adviser
 * @param {[string, string]} names of the players
 */
export function showSummary(line, adviser, names) {
  const rows = names.map((name, player) => {
    const lost = line.map((one) => (one.mover === player ? one.loss(adviser) : null));
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
  byId("summary").hidden = !line.some((one) => one.loss(adviser) !== null);
}
