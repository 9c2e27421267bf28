// What is drawn over the picture? Marks of the game's text, candidates, and the moves of a variation.

import { byId, draw } from "./dom.js";
import { told } from "./values.js";

/** @typedef {import("./position.js").Action} Action @typedef {import("./position.js").Touch} Touch */

const MOST = 8; // candidates on the board; the table has more
const LEAST = 0.02; // of the visits of the best candidate, to be on the board
const CHARACTER = 0.62; // width of a letter, in its height

export class Overlay {
  constructor() {
    this.layer = byId("overlay");
    this.frame = byId("board");
    this.box = [0, 0, 1, 1];
    this.pixel = 1;
  }

  /**
   * @param {number[]} box of the picture
   * @param {{marks: import("./position.js").Mark[], actions: Action[], moves: any[], pv: string[] | null, players:
   *   number}} drawn marks; the legal actions; what a search says of them, best first; a variation that is looked at;
   *   how many players take turns
   */
  show(box, { marks, actions, moves, pv, players }) {
    this.layer.setAttribute("viewBox", box.join(" "));
    this.box = box;
    this.pixel = box[2] / Math.max(1, this.frame.clientWidth); // of the page, in the picture's units
    const byName = new Map(actions.map((action) => [action.name, action]));
    const parts = marks.map((one) => this.noted(one));
    if (pv !== null) parts.push(...this.variation(pv, byName, players));
    else parts.push(...this.candidates(moves, byName));
    this.layer.replaceChildren(...parts);
  }

  /** Where a place is marked: in its middle, and a column of the whole board at its top, where pieces fall in. @param
   * {Touch} touch @returns {[number, number]} */
  point([, x, y, width, height]) {
    return [x + width / 2, y + (height > 0.7 * this.box[3] && height > 2 * width ? width : height) / 2];
  }

  /** A mark of the game's text. @param {import("./position.js").Mark} mark */
  noted([shape, text, places]) {
    const points = places.map((touch) => this.point(touch));
    const [[x, y]] = points;
    const size = 0.3 * Math.min(places[0][3], places[0][4]);
    const half = 0.7 * size;
    const look = { class: `noted ${shape}`, "stroke-width": Math.max(2 * this.pixel, 0.16 * size) };
    if (shape === "label") {
      const letter = Math.min(1.5 * size, (2.6 * size) / Math.max(1, CHARACTER * text.length));
      return draw("text", { x, y: y + 0.36 * letter, "font-size": letter, class: look.class }, text);
    }
    const [u, v] = points[points.length - 1];
    const lines = {
      triangle: `M${x} ${y - size}L${x + 0.87 * size} ${y + 0.5 * size}H${x - 0.87 * size}Z`,
      square: `M${x - half} ${y - half}h${2 * half}v${2 * half}h${-2 * half}Z`,
      cross: `M${x - half} ${y - half}l${2 * half} ${2 * half}m0 ${-2 * half}l${-2 * half} ${2 * half}`,
      circle: `M${x - size} ${y}a${size} ${size} 0 1 0 ${2 * size} 0a${size} ${size} 0 1 0 ${-2 * size} 0Z`,
      arrow: `M${x} ${y}L${u} ${v}${arrowHead(u - x, v - y, size)}`,
    };
    return draw("path", { d: lines[/** @type {keyof typeof lines} */ (shape)] ?? "", ...look });
  }

  /** @param {any[]} moves @param {Map<string, Action>} byName */
  candidates(moves, byName) {
    const total = moves.reduce((sum, move) => sum + move.visits, 0);
    /** @type {Map<string, {touch: Touch, ranks: number[], move: any}>} */
    const marks = new Map();
    const arrows = [];
    for (const move of moves.slice(0, MOST)) {
      const touches = byName.get(move.move)?.touches ?? [];
      if (touches.length === 0 || move.visits < LEAST * moves[0].visits) continue;
      const touch = touches[touches.length - 1];
      const known = marks.get(touch[0]);
      if (known === undefined) marks.set(touch[0], { touch, ranks: [move.order + 1], move });
      else known.ranks.push(move.order + 1);
      if (touches.length > 1) arrows.push(this.arrow(touches, move.visits / Math.max(1, total), move.order === 0));
    }
    const drawn = [...marks.values()].reverse();
    return [...arrows.reverse(), ...drawn.map(({ touch, ranks, move }) => this.mark(touch, ranks, move, total))];
  }

  /** @param {Touch[]} touches @param {number} share @param {boolean} isBest */
  arrow(touches, share, isBest) {
    const [[x, y], [u, v]] = [this.point(touches[0]), this.point(touches[touches.length - 1])];
    const look = { class: isBest ? "way best" : "way", "stroke-width": (2 + 7 * share) * this.pixel };
    return draw("line", { x1: x, y1: y, x2: u, y2: v, ...look });
  }

  /** A candidate: its rank, and where there is room its value and its share of the visits. */
  mark(touch, ranks, move, total) {
    const [, , , width, height] = touch;
    const [x, y] = this.point(touch);
    const side = Math.min(width, height) / this.pixel; // in pixels
    const lines = [ranks.length > 2 ? `${ranks[0]} ${ranks[1]} …` : ranks.join(" ")];
    if (side >= 34) lines.push(told(move.value));
    if (side >= 46) lines.push(`${Math.round((100 * move.visits) / Math.max(1, total))}%`);
    const usual = Math.max(9, Math.min(0.48 * side, Math.max(30, 0.2 * side)));
    const wide = CHARACTER * Math.max(...lines.map((line) => line.length)); // at a letter of one pixel
    const high = side / (lines.length + 0.7);
    const fitting = Math.max(10, Math.min(high, (2 * usual) / (wide + 0.2)));
    const letter = Math.min(Math.max(15, 0.1 * side), fitting) * this.pixel;
    const radius = Math.max(usual * this.pixel, (letter * wide) / 2 + 2 * this.pixel);
    const texts = lines.map((line, index) => {
      const row = y + letter * (1.05 * (index - (lines.length - 1) / 2) + 0.36);
      const size = letter * (index === 0 ? 1.1 : 0.95);
      return draw("text", { x, y: row, "font-size": size, class: index === 0 ? "rank" : "" }, line);
    });
    return draw("g", { class: ranks[0] === 1 ? "candidate best" : "candidate" }, this.plate(x, y, radius), ...texts);
  }

  /** What a text stands on: round corners, and no circle, because stones are circles. */
  plate(x, y, radius) {
    const round = { rx: 0.4 * radius, "stroke-width": 1.5 * this.pixel };
    return draw("rect", { x: x - radius, y: y - radius, width: 2 * radius, height: 2 * radius, ...round });
  }

  /** The moves of a variation as numbers. Only games that play with one touch have the same places later on; of the
   * others the first move is drawn. */
  variation(pv, byName, players) {
    const first = byName.get(pv[0])?.touches ?? [];
    const isSimple = first.length === 1;
    /** @type {Map<string, {touch: Touch, numbers: number[]}>} */
    const places = new Map();
    const parts = first.length > 1 ? [this.arrow(first, 0.5, true)] : [];
    pv.slice(0, isSimple ? 20 : 1).forEach((name, index) => {
      const touches = byName.get(name)?.touches ?? [];
      if (touches.length === 0 || (isSimple && touches.length !== 1)) return;
      const touch = touches[touches.length - 1];
      const known = places.get(touch[0]);
      if (known === undefined) places.set(touch[0], { touch, numbers: [index + 1] });
      else known.numbers.push(index + 1);
    });
    for (const { touch, numbers } of places.values()) {
      const [x, y] = this.point(touch);
      const text = numbers.join(" ");
      const side = Math.min(touch[3], touch[4]) / this.pixel;
      const letter = Math.min(16, Math.max(9, (side * 1.3) / Math.max(2, text.length))) * this.pixel;
      const needed = letter * CHARACTER * text.length * 0.5 + 3 * this.pixel;
      const radius = Math.max(needed, Math.min(0.42 * side, 22) * this.pixel);
      const said = draw("text", { x, y: y + letter * 0.36, "font-size": letter, class: "rank" }, text);
      const kind = (numbers[0] - 1) % players === 0 ? "candidate best" : "candidate";
      parts.push(draw("g", { class: kind }, this.plate(x, y, radius), said));
    }
    return parts;
  }
}

/** The head of an arrow that ends here. @param {number} x @param {number} y its way @param {number} size */
function arrowHead(x, y, size) {
  const part = (0.8 * size) / Math.max(1e-9, Math.hypot(x, y));
  const [along, across] = [[-x * part, -y * part], [-y * part * 0.6, x * part * 0.6]];
  const [a, b] = [along[0] + across[0], along[1] + across[1]];
  return `m${a} ${b}l${-a} ${-b}l${along[0] - across[0]} ${along[1] - across[1]}`;
}
