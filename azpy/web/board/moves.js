// What does the record say? The moves with their variations, each a button; comments, names and results.

import { byId, keep, make, mark, write } from "./dom.js";
import { seats, upper } from "./seats.js";
import { turnsOf } from "./turns.js";
import { judged, toldLoss } from "./values.js";

/** Judgements that PGN has numbers for (NAG); a file may name anything else. */
const GLYPHS = {
  __proto__: null, ...{ 1: "!", 2: "?", 3: "!!", 4: "??", 5: "!?", 6: "?!" },
  ...{ 10: "=", 13: "∞", 14: "⩲", 15: "⩱", 16: "±", 17: "∓", 18: "+−", 19: "−+", 146: "N" },
};

/** PGN's and SGF's names of what people look for first, and how they are told. */
const TOLD = { Event: "", EV: "", Date: "", DT: "", Site: "", PC: "", Round: "round ", RO: "round ", HA: "handicap " };
const RESULTS = { "1-0": ["1", "0"], "0-1": ["0", "1"], "1/2-1/2": ["½", "½"] };

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
    const [inner, remark] = child.children;
    if (isVariation) return show(inner, [{ position, isVariation: false, isFirst: true }, ...following(position)]);
    const isHere = position === game.current;
    const isRow = game.isPaired ? position.mover !== 1 : hasSteps && places.get(position)?.begins;
    mark(child, "class", isRow || (isFirst && (game.isPaired || hasSteps)) ? "row" : null);
    mark(inner, "class", `move${isHere ? " here" : ""}${position.comment === "" ? "" : " noted"}`);
    mark(inner, "aria-current", isHere ? "step" : null);
    const label = position.mover === null ? `${position.label.replace(/^(\d)-(\d)$/, "$1$2")}:` : position.label;
    const glyphs = (position.notes.NAG ?? []).map((nag) => GLYPHS[nag] ?? `$${nag}`).join(" ");
    const said = [head(item), label, glyphs, position.comment === "" ? "" : "(with a comment)"];
    const spoken = [said[0] || `${places.get(position)?.number}.`, ...said.slice(1)];
    mark(inner, "aria-label", spoken.filter((part) => part !== "").join(" "));
    const [ply, name, glyph] = inner.children;
    write(ply, said[0]);
    write(name, label);
    write(glyph, glyphs);
    const loss = hints ? position.loss(adviser, hintSimulations) : null;
    const judgement = judged(loss);
    remark.hidden = judgement === null;
    write(remark, judgement === null ? "" : ` ${judgement.mark} −${toldLoss(loss)}`);
    mark(remark, "aria-label", judgement === null ? null : `${judgement.said}, loses ${toldLoss(loss)}`);
  };
  const create = ({ position, isVariation }) => {
    const words = { "aria-label": `Variation at move ${position.ply}` };
    if (isVariation) return make("li", { className: "variation" }, make("ol", words));
    const part = (className) => make("span", { className });
    const onclick = () => onChoose(position);
    const button = make("button", { type: "button", onclick }, part("ply"), part("name"), part("glyph"));
    return make("li", {}, button, make("span", { className: "loss", role: "img" }));
  };
  const keyOf = ({ position, isVariation }) => `${position.id} ${isVariation}`;
  const show = (parent, items) => keep(parent, items, keyOf, create, update);
  show(list, following(game.root));
  byId("no_moves").hidden = game.root.children.length > 0;
  if (!isNew) return;
  // The list scrolls, and the page stays.
  const here = list.querySelector(".here");
  list.scrollTop = here === null ? 0 : here.offsetTop - list.clientHeight / 2;
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

export function showComment(position) {
  const field = byId("comment");
  if (field.value !== position.comment) field.value = position.comment;
  write(byId("noted"), position.comment);
}

/** Names and result beside the board, and the rest above the moves. */
export function showHeaders(about, komi) {
  const { players, ranks, result, tags = [] } = about ?? {};
  const scores = scoresOf(result ?? "");
  for (const player of seats("named").keys()) {
    const [name, rank] = [players?.[player], ranks?.[player]];
    write(byId(`named_${player}`), [name, rank && `(${rank})`].filter(Boolean).join(" "));
    write(byId(`score_${player}`), scores[player] ?? "");
  }
  const told = tags.filter(([name, value]) => Object.hasOwn(TOLD, name) && !/^[?.]*$/.test(value));
  const words = told.map(([name, value]) => TOLD[name] + value);
  if (komi !== null) words.push(`komi ${komi}`);
  write(byId("headers"), [...words, ...(result ? [`result ${result}`] : [])].join(" · "));
}

/** What each player has of a result. */
function scoresOf(result) {
  const won = /^([BW])\+(.*)$/.exec(result);
  if (won !== null) return won[1] === "B" ? [`+${won[2]}`, ""] : ["", `+${won[2]}`];
  return RESULTS[result] ?? [];
}
