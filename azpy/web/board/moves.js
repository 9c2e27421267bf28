// Where in the record are we? The moves with their variations, each a button.

import { byId, fill, make, signed } from "./dom.js";

/** @typedef {import("./game.js").Position} Position @typedef {import("./game.js").Game} Game */

const WORTH_SAYING = 0.1; // a move that loses less of the value has no remark

/**
 * @param {Game} game
 * @param {boolean} isValued whether losses are told
 * @param {boolean} isNew whether the current position is another one, which comes into view
 * @param {(position: Position) => void} onChoose
 */
export function showMoves(game, isValued, isNew, onChoose) {
  const list = byId("moves");
  /** @type {(position: Position) => HTMLElement} */
  const entry = (position) => {
    const loss = isValued ? position.loss : null;
    const lost = loss !== null && loss >= WORTH_SAYING ? ` ${signed(-loss)}` : "";
    const button = make(
      "button",
      {
        type: "button",
        className: position === game.current ? "move here" : "move",
        "data-key": position.moves().join("\n"),
        "aria-current": position === game.current ? "step" : null,
        "aria-label": `${position.ply}. ${position.label}${lost ? `, loses ${(loss ?? 0).toFixed(2)}` : ""}`,
      },
      make("span", { className: "ply" }, `${position.ply}.`),
      ` ${position.label}`,
      lost ? make("span", { className: "loss" }, lost) : null,
    );
    button.addEventListener("click", () => onChoose(position));
    return make("li", {}, button);
  };
  /** @type {(from: Position) => HTMLElement[]} */
  const line = (from) => {
    const found = [];
    for (let one = from; one.children.length > 0; one = one.children[0]) {
      const [first, ...others] = one.children;
      found.push(entry(first));
      for (const other of others) {
        const inner = make("ol", { "aria-label": `Variation at move ${other.ply}` }, entry(other), ...line(other));
        found.push(make("li", { className: "variation" }, inner));
      }
    }
    return found;
  };
  fill(list, line(game.root));
  byId("no_moves").hidden = game.root.children.length > 0;
  if (!isNew) return;
  // The list scrolls, and the page stays.
  const here = list.querySelector(".here");
  if (here === null) list.scrollTop = 0;
  else if (here instanceof HTMLElement) list.scrollTop = here.offsetTop - list.clientHeight / 2;
}
