// What is drawn over the picture? Tints of places, marks of the game's text, candidates, and the moves of a variation.

import { byId, draw } from "./dom.js";
import { within } from "./men.js";
import { told } from "./values.js";

const MOST = 8; // candidates on the board; the table has more
const LEAST = 0.02; // of the visits of the best candidate, to be on the board
const CHARACTER = 0.62; // width of a letter, in its height

export class Overlay {
  /** Draws marks, what a search says of the legal actions, and a variation that is looked at. `box` is the picture's. */
  show(box, { marks, actions, moves, pv, players }) {
    this.box = box;
    this.pixel = box[2] / Math.max(1, byId("board").clientWidth); // of the page, in the picture's units
    const byName = new Map(actions.map((action) => [action.name, action]));
    const parts = marks.map((one) => this.noted(one));
    if (pv !== null) parts.push(...this.variation(pv, byName, players));
    else parts.push(...this.candidates(moves, byName));
    byId("overlay").setAttribute("viewBox", box.join(" "));
    byId("overlay").replaceChildren(...parts);
  }

  /** Where a place is marked: in its middle, and a column of the whole board at its top, where pieces fall in. */
  point([, x, y, width, height]) {
    return [x + width / 2, y + (height > 0.7 * this.box[3] && height > 2 * width ? width : height) / 2];
  }

  /** A mark of the game's text. */
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
    return draw("path", { d: lines[shape] ?? "", ...look });
  }

  /** The best moves: their ranks, and where there is room the value and the share of the visits. */
  candidates(moves, byName) {
    const total = Math.max(1, moves.reduce((sum, move) => sum + move.visits, 0));
    const isShown = ({ move, visits }) => byName.get(move)?.touches.length > 0 && visits >= LEAST * moves[0].visits;
    const shown = moves.slice(0, MOST).filter(isShown).map((move) => ({ move, touches: byName.get(move.move).touches }));
    const arrows = shown.filter(({ touches }) => touches.length > 1);
    const plates = numbered(shown.map(({ move, touches }) => [touches.at(-1), move.order + 1, move]));
    return [
      ...arrows.reverse().map(({ move, touches }) => this.arrow(touches, move.visits / total, move.order === 0)),
      ...plates.reverse().map(({ touch, numbers, move: { value, visits } }) => {
        return this.plate(touch, numbers, [told(value), `${Math.round((100 * visits) / total)}%`], numbers[0] === 1);
      }),
    ];
  }

  /** The moves of a variation as numbers. Only games that play with one touch have the same places later on; of the
   * others the first move is drawn. */
  variation(pv, byName, players) {
    const first = byName.get(pv[0])?.touches ?? [];
    const each = pv.slice(0, first.length === 1 ? 20 : 1).map((name, index) => [byName.get(name)?.touches, index + 1]);
    const known = each.filter(([touches]) => touches?.length > 0 && touches.length === first.length);
    const plates = numbered(known.map(([touches, number]) => [touches.at(-1), number]));
    return [
      ...(first.length > 1 ? [this.arrow(first, 0.5, true)] : []),
      ...plates.map(({ touch, numbers }) => this.plate(touch, numbers, [], (numbers[0] - 1) % players === 0)),
    ];
  }

  /** The way of a move, with its share of the visits. */
  arrow(touches, share, isBest) {
    const [[x, y], [u, v]] = [this.point(touches[0]), this.point(touches.at(-1))];
    const look = { class: isBest ? "way best" : "way", "stroke-width": (2 + 7 * share) * this.pixel };
    return draw("line", { x1: x, y1: y, x2: u, y2: v, ...look });
  }

  /** Numbers on a place, and further lines where there is room. They stand on a plate with round corners, and not on a
   * circle, because stones are circles. */
  plate(touch, numbers, more, isBest) {
    const [x, y] = this.point(touch);
    const side = Math.min(touch[3], touch[4]) / this.pixel; // in pixels
    const lines = [numbers.length > 2 ? `${numbers[0]} ${numbers[1]} …` : numbers.join(" ")];
    lines.push(...more.slice(0, side >= 46 ? 2 : side >= 34 ? 1 : 0));
    const usual = Math.max(9, Math.min(0.48 * side, Math.max(30, 0.2 * side)));
    const wide = CHARACTER * Math.max(...lines.map((line) => line.length)); // at a letter of one pixel
    const fitting = Math.max(10, Math.min(side / (lines.length + 0.7), (2 * usual) / (wide + 0.2)));
    const letter = Math.min(Math.max(15, 0.1 * side), fitting) * this.pixel;
    const radius = Math.max(usual * this.pixel, (letter * wide) / 2 + 2 * this.pixel);
    const texts = lines.map((line, index) => {
      const row = y + letter * (1.05 * (index - (lines.length - 1) / 2) + 0.36);
      const size = letter * (index === 0 ? 1.1 : 0.95);
      return draw("text", { x, y: row, "font-size": size, class: index === 0 ? "rank" : "" }, line);
    });
    const box = { x: x - radius, y: y - radius, width: 2 * radius, height: 2 * radius, rx: 0.4 * radius };
    const plate = draw("rect", { ...box, "stroke-width": 1.5 * this.pixel });
    return draw("g", { class: isBest ? "candidate best" : "candidate" }, plate, ...texts);
  }
}

/** The places of numbers, each once with all of them. `each` has place, number and move. */
function numbered(each) {
  const places = new Map();
  for (const [touch, number, move] of each) {
    const known = places.get(touch[0]) ?? { touch, numbers: [], move };
    known.numbers.push(number);
    places.set(touch[0], known);
  }
  return [...places.values()];
}

/** The head of an arrow that ends here and comes this way. */
function arrowHead(x, y, size) {
  const part = (0.8 * size) / Math.max(1e-9, Math.hypot(x, y));
  const [along, across] = [[-x * part, -y * part], [-y * part * 0.6, x * part * 0.6]];
  const [a, b] = [along[0] + across[0], along[1] + across[1]];
  return `m${a} ${b}l${-a} ${-b}l${along[0] - across[0]} ${along[1] - across[1]}`;
}

/** Tints places of the picture; `tinted` has them by the class of their tint. */
export function showTints(layers, tinted, isTurned) {
  const [left, top, wide, high] = layers.box;
  const half = isTurned ? { transform: `rotate(180 ${left + wide / 2} ${top + high / 2})` } : {};
  const tints = Object.entries(tinted).flatMap(([look, touches]) => touches.map((touch) => tintOf(layers, touch, look)));
  for (const id of ["tints", "dots"]) {
    byId(id).setAttribute("viewBox", layers.box.join(" "));
    byId(id).replaceChildren(draw("g", half, ...tints.filter((one) => one.matches(".dot") === (id === "dots"))));
  }
}

/** The shape of a place; of a place that is not drawn, a dot on its man. */
function tintOf({ shapes, men, box }, touch, look) {
  const [, x, y, width, height] = touch;
  const isGround = (one) => {
    const [across, down] = [one.wide / width, one.high / height];
    const isNear = Math.abs(one.x - x - width / 2) < 0.1 * width && Math.abs(one.y - y - height / 2) < 0.1 * height;
    return isNear && across > 0.65 && across < 1.3 && down > 0.65 && down < 2.2;
  };
  const isMan = (one) => men.some(({ parts }) => parts.includes(one.source));
  const ground = shapes.find((one) => /circle|rect|polygon/.test(one.kind) && isGround(one) && !isMan(one));
  if (ground !== undefined) {
    const names = { circle: "cx cy r", rect: "x y width height", polygon: "points" }[ground.kind] ?? "";
    const shape = Object.fromEntries(names.split(" ").map((name) => [name, ground.at(name)]));
    return draw(ground.kind, { class: look, ...shape });
  }
  const isColumn = height > 0.7 * box[3] && height > 2 * width;
  const here = men.filter(within(touch)).sort((one, other) => (isColumn ? other.y - one.y : 0));
  const man = here.at(-1);
  if (man === undefined) return draw("rect", { x, y, width, height, rx: 0.1 * Math.min(width, height), class: look });
  return draw("circle", { cx: man.x, cy: man.y, r: 0.14 * man.wide, class: `${look} dot` });
}
