// Where in the record are we? The moves with their variations, each a button.

import { byId, keep, make, mark, signed } from "./dom.js";

/** @typedef {import("./game.js").Position} Position @typedef {import("./game.js").Game} Game */
/** @typedef {{position: Position, isVariation: boolean}} Item a move, or the variation that it begins */

const WORTH_SAYING = 0.1; // a move that loses less of the value has no remark

/**
 * @param {Game} game
 * @param {string | null} adviser who says what moves lost; null for nobody
 * @param {boolean} isNew whether the current position is another one, which comes into view
 * @param {(position: Position) => void} onChoose
 */
export function showMoves(game, adviser, isNew, onChoose) {
  const list = byId("moves");
  /** @type {(child: HTMLElement, item: Item) => void} */
  const update = (child, { position, isVariation }) => {
    const [inner] = child.children;
    if (isVariation) return show(inner, [{ position, isVariation: false }, ...following(position)]);
    const isHere = position === game.current;
    mark(inner, "class", isHere ? "move here" : "move");
    mark(inner, "aria-current", isHere ? "step" : null);
    mark(inner, "aria-label", `${position.ply}. ${position.label}`);
    const text = ` ${position.label}`;
    if (inner.lastChild?.textContent !== text) {
      inner.replaceChildren(make("span", { className: "ply" }, `${position.ply}.`), text);
    }
    const loss = adviser === null ? null : position.loss(adviser);
    const isSaid = loss !== null && loss >= WORTH_SAYING;
    const told = isSaid ? [`loses ${loss.toFixed(2)}`, ` ${signed(-loss)}`] : ["", ""];
    const remark = child.querySelector(".loss");
    if ((remark?.textContent ?? "") === told[1]) return;
    remark?.remove();
    if (isSaid) child.append(make("span", { className: "loss", role: "img", "aria-label": told[0] }, told[1]));
  };
  /** @type {(item: Item) => HTMLElement} */
  const create = ({ position, isVariation }) => {
    if (isVariation) {
      const inner = make("ol", { "aria-label": `Variation at move ${position.ply}` });
      return make("li", { className: "variation" }, inner);
    }
    const button = make("button", { type: "button" });
    button.addEventListener("click", () => onChoose(position));
    return make("li", {}, button);
  };
  const keyOf = (/** @type {Item} */ { position, isVariation }) => `${position.id} ${isVariation}`;
  const show = (/** @type {Element} */ parent, /** @type {Item[]} */ items) => keep(parent, items, keyOf, create, update);
  show(list, following(game.root));
  byId("no_moves").hidden = game.root.children.length > 0;
  if (!isNew) return;
  // The list scrolls, and the page stays.
  const here = list.querySelector(".here");
  if (here === null) list.scrollTop = 0;
  else if (here instanceof HTMLElement) list.scrollTop = here.offsetTop - list.clientHeight / 2;
}

/** The moves after a position, each with the variations that stand for it. @param {Position} from @returns {Item[]} */
function following(from) {
  const found = [];
  for (let one = from; one.children.length > 0; one = one.children[0]) {
    found.push(...one.children.map((position, index) => ({ position, isVariation: index > 0 })));
  }
  return found;
}
