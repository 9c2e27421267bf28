// Where in the record are we? The moves with their variations, each a button.

import { byId, keep, make, mark, write } from "./dom.js";
import { upper } from "./sides.js";
import { turnsOf } from "./turns.js";
import { judged, toldLoss } from "./values.js";

/** Judgements that PGN has numbers for (NAG). */
const GLYPHS = {
  ...{ 1: "!", 2: "?", 3: "!!", 4: "??", 5: "!?", 6: "?!" },
  ...{ 10: "=", 13: "∞", 14: "⩲", 15: "⩱", 16: "±", 17: "∓", 18: "+−", 19: "−+", 146: "N" },
};

/** Lists the moves. Where the current position is another one, it comes into view. */
export function showMoves(game, { hints, adviser, hintSimulations }, isNew, onChoose) {
  const list = byId("moves");
  const { places, hasSteps } = turnsOf(game);
  /** What stands before a move: its number, and in turns of several steps who moved. */
  const head = ({ position, isFirst }) => {
    const { number, owner, begins } = places.get(position);
    if (game.isPaired) return position.mover === 1 ? (isFirst ? `${number}…` : "") : `${number}.`;
    if (!hasSteps) return `${number}.`;
    if (!begins && !isFirst) return "";
    const who = typeof owner === "number" && game.names.length > 1 ? ` ${upper(game.names[owner])}` : "";
    return `${number}.${who}`;
  };
  const update = (child, item) => {
    const { position, isVariation, isFirst } = item;
    const [inner] = child.children;
    if (isVariation) return show(inner, [{ position, isVariation: false, isFirst: true }, ...following(position)]);
    const isHere = position === game.current;
    const isRow = game.isPaired ? position.mover !== 1 : hasSteps && places.get(position)?.begins;
    mark(child, "class", isRow || (isFirst && (game.isPaired || hasSteps)) ? "row" : null);
    mark(inner, "class", `move${isHere ? " here" : ""}${position.comment === "" ? "" : " noted"}`);
    mark(inner, "aria-current", isHere ? "step" : null);
    const label = position.mover === null ? `${position.label.replace(/^(\d)-(\d)$/, "$1$2")}:` : position.label;
    const sign = (nag) => (Object.hasOwn(GLYPHS, nag) ? GLYPHS[nag] : `$${nag}`);
    const glyphs = (position.notes.NAG ?? []).map(sign).join(" ");
    const said = [head(item), label, glyphs, position.comment === "" ? "" : "(with a comment)"];
    const spoken = [said[0] || `${places.get(position)?.number}.`, ...said.slice(1)];
    mark(inner, "aria-label", spoken.filter((part) => part !== "").join(" "));
    const [ply, name, glyph] = inner.children;
    write(ply, said[0]);
    write(name, label);
    write(glyph, glyphs);
    const loss = hints ? position.loss(adviser, hintSimulations) : null;
    const judgement = judged(loss);
    const text = judgement === null ? "" : ` ${judgement.mark} −${toldLoss(loss)}`;
    const remark = child.querySelector(".loss");
    if ((remark?.textContent ?? "") === text) return;
    remark?.remove();
    if (judgement === null) return;
    const words = `${judgement.said}, loses ${toldLoss(loss)}`;
    child.append(make("span", { className: "loss", role: "img", "aria-label": words }, text));
  };
  const create = ({ position, isVariation }) => {
    if (isVariation) {
      const inner = make("ol", { "aria-label": `Variation at move ${position.ply}` });
      return make("li", { className: "variation" }, inner);
    }
    const part = (className) => make("span", { className });
    const button = make("button", { type: "button" }, part("ply"), part("name"), part("glyph"));
    button.addEventListener("click", () => onChoose(position));
    return make("li", {}, button);
  };
  const keyOf = ({ position, isVariation }) => `${position.id} ${isVariation}`;
  const show = (parent, items) => keep(parent, items, keyOf, create, update);
  show(list, following(game.root));
  byId("no_moves").hidden = game.root.children.length > 0;
  if (!isNew) return;
  // The list scrolls, and the page stays.
  const here = list.querySelector(".here");
  if (here === null) list.scrollTop = 0;
  else if (here instanceof HTMLElement) list.scrollTop = here.offsetTop - list.clientHeight / 2;
}

/** The moves after a position, each with the variations that stand for it. `isFirst` says whether a move is the first of
 * its line, or stands behind a variation. */
function following(from) {
  const found = [];
  let isFirst = from.parent === null;
  for (let one = from; one.children.length > 0; one = one.children[0]) {
    found.push(...one.children.map((position, index) => ({ position, isVariation: index > 0, isFirst })));
    isFirst = one.children.length > 1;
  }
  return found;
}
