// Which parts of a picture are men? They lie over what is tinted. After a move they slide, fall, flip, roll or appear.

import { byId, make, pictureAddress } from "./dom.js";
import { isMan, shapesOf } from "./places.js";
import { boxOf } from "./position.js";

// A man is a shape with all its parts; men of one `look` differ by their place.

const SLIDE = 120; // milliseconds
const FALL = 200;

const covers = (shape, { x, y }) => 2 * Math.abs(x - shape.x) < shape.wide && 2 * Math.abs(y - shape.y) < shape.high;

export const within = ([, left, top, wide, high]) => ({ x, y }) =>
  x > left && x < left + wide && y > top && y < top + high;

const known = new WeakMap();

/** The men of a picture, and what lies below them: its shapes, and the picture without men. One with groups stays whole. */
export function layersOf(shown, sides) {
  const found = known.get(shown) ?? split(shown, sides);
  known.set(shown, found);
  return found;
}

function split({ svg }, sides) {
  const [box, shapes] = [boxOf(svg), shapesOf(svg)];
  if (/<g\b/.test(svg)) return { shapes, men: [], box, svg, whole: svg };
  const men = [];
  for (const shape of shapes) {
    const { source, at } = shape;
    if (!/(\/|<\/text)>$/.test(source) || at("class") === "name") continue;
    const look = source.replace(/ (c?[xy]|transform)="[^"]*"/g, "");
    if (isMan(shape, sides)) men.push({ ...shape, look, parts: source });
    const below = men.findLast((man) => man.source !== source && shape.wide < man.wide && covers(man, shape));
    if (!isMan(shape, sides) && below !== undefined) below.parts += source;
  }
  let rest = svg;
  for (const { parts } of men) for (const part of parts.split(/(?<=\/>|<\/text>)/)) rest = rest.replace(part, "");
  return { shapes, men, box, svg: rest, whole: svg };
}

/** How men came to where they are: milliseconds and keyframes of a man's copy. `side` is -1 where the board is turned. */
function motions(before, after, places, side) {
  const [left, top, wide, high] = after.box;
  const percent = (part) => `${100 * (side < 0 ? 1 - part : part)}%`;
  const isIn = ({ men }, man) => men.some(({ parts }) => parts === man.parts);
  const gone = before.men.filter((man) => !isIn(after, man));
  const found = new Map();
  for (const man of after.men.filter((one) => !isIn(before, one))) {
    const far = ({ x, y }) => Math.hypot(x - man.x, y - man.y);
    const there = gone.find((one) => far(one) < 1);
    const isTile = man.at("class") === "tile";
    const isDie = man.kind === "rect" && !isTile;
    const isAlong = (one) => !isTile || Math.abs(one.x - man.x) < 1 || Math.abs(one.y - man.y) < 1;
    const alike = gone.filter((one) => !isDie && one.look === man.look && isAlong(one));
    const same = alike.sort((one, other) => far(one) - far(other));
    // A pawn becomes a queen of its color.
    const isPawn = (one) => one.kind === "path" && one !== there && one.at("fill") === man.at("fill");
    const from = same[0] ?? (isDie ? undefined : gone.find(isPawn));
    const column = places.find((touch) => within(touch)(man) && touch[4] > 0.7 * high && touch[4] > 2 * touch[3]);
    const move = (x, y) => ({ transform: `translate(${(100 * side * x) / wide}%, ${(100 * side * y) / high}%)` });
    const turn = { transform: "none", transformOrigin: `${percent((man.x - left) / wide)} ${percent((man.y - top) / high)}` };
    if (from !== undefined) gone.splice(gone.indexOf(from), 1);
    const isOther = there !== undefined && !isDie && there.look !== man.look;
    const motion =
      from !== undefined ? [SLIDE, move(from.x - man.x, from.y - man.y), move(0, 0)]
      : isOther ? [SLIDE, { ...turn, transform: isTile ? "scale(1.15)" : "scaleX(0)" }, turn]
      : there !== undefined ? null
      : isDie ? [FALL, { ...turn, transform: "rotate(-200deg) scale(0.5)" }, turn]
      : column !== undefined ? [FALL, move(0, column[2] - man.y), move(0, 0)]
      : [FALL, { opacity: 0 }, { opacity: 1 }];
    if (motion !== null) found.set(man, motion);
  }
  return found;
}

export class Men {
  constructor() {
    [this.image, this.moving, this.dragged] = [byId("men"), byId("moving"), byId("dragged")];
    this.layers = null;
    this.lifted = [];
    this.copies = new Map(); // what moves now, by the parts of its man
  }

  /** Shows the men of a position, which may be one step away from what was shown before. */
  show(shown, sides, seen, isTurned, isStep) {
    const [before, layers] = [this.layers, layersOf(shown, sides)];
    const isDropped = this.lifted.length > 0;
    const places = shown.places.map(({ touch }) => touch);
    // `seen` turns a picture as the board is seen, and `way` is -1 where it is turned.
    Object.assign(this, { layers, seen, places, way: isTurned ? -1 : 1, lifted: [] });
    this.dragged.hidden = true;
    const isStill = before === null || !isStep || isDropped || matchMedia("(prefers-reduced-motion: reduce)").matches;
    const moved = isStill ? new Map() : motions(before, layers, this.places, this.way);
    // What moves goes on where the next picture has it too, such as tiles that slide before a new one comes.
    for (const [parts, { copy }] of this.copies) {
      if (!isStill && layers.men.some((man) => man.parts === parts)) continue;
      copy.remove();
      this.copies.delete(parts);
    }
    for (const [man, motion] of moved) this.animate(man.parts, this.address([man.parts]), motion);
    const isOther = !isStill && this.copies.size === 0 && before.whole !== layers.whole;
    if (isOther) this.animate("", pictureAddress(seen(before.whole)), [FALL, { opacity: 1 }, { opacity: 0 }]);
    const below = [...moved.keys()].flatMap((man) => holes(before, layers, man));
    this.draw(layers.men.filter(({ parts }) => !this.copies.has(parts)), below);
    if (this.copies.size === 0) return;
    const ends = [...this.copies.values()].map(({ end }) => end);
    Promise.all(ends).then(() => this.layers === layers && this.settle(), () => {});
  }

  /** Moves a copy of a man; of the whole picture before, which fades, where its parts are empty. */
  animate(parts, src, [duration, ...frames]) {
    const copy = make("img", { alt: "", src });
    this.moving.append(copy);
    const end = copy.animate(frames, { duration, easing: duration === FALL ? "ease-in" : "ease-out", fill: "forwards" }).finished;
    this.copies.set(parts, { copy, end });
  }

  /** Puts the men back where they are; copies stay until the picture is there. */
  async settle() {
    const { layers } = this;
    this.draw(layers?.men ?? []);
    await this.image.decode().catch(() => {});
    if (this.layers !== layers) return;
    this.moving.replaceChildren();
    this.copies.clear();
  }

  address(parts) {
    const head = /<svg\b[^>]*>/.exec(this.layers?.svg ?? "")?.[0] ?? "<svg>";
    return pictureAddress(this.seen(`${head}${parts.join("")}</svg>`));
  }

  /** Draws men, and what lies below them. */
  draw(men, below = []) {
    this.image.hidden = men.length + below.length === 0;
    if (!this.image.hidden) this.image.src = this.address([...below, ...men.map(({ parts }) => parts)]);
  }

  /** Has the upper man of a place follow the pointer. */
  lift(place, { clientX, clientY }) {
    const [touch, { layers }] = [this.places.find(([name]) => name === place), this];
    if (touch === undefined || layers === null) return;
    if (this.lifted.length === 0) {
      this.lifted = layers.men.filter(within(touch)).slice(-1);
      if (this.lifted.length === 0) return;
      this.dragged.src = this.address(this.lifted.map(({ parts }) => parts));
      this.draw(layers.men.filter((man) => !this.lifted.includes(man)));
    }
    this.dragged.hidden = false;
    const frame = byId("board").getBoundingClientRect();
    const [[{ x, y }], [left, top, wide, high]] = [this.lifted, layers.box];
    const [across, down] = [(x - left) / wide, (y - top) / high].map((part) => (this.way < 0 ? 1 - part : part));
    const shift = [clientX - frame.x - across * frame.width, clientY - frame.y - down * frame.height];
    this.dragged.style.transform = `translate(${shift[0]}px, ${shift[1]}px)`;
  }

  drop() {
    this.dragged.hidden = true;
    if (this.lifted.length === 0) return;
    this.lifted = [];
    this.draw(this.layers?.men ?? []);
  }
}

/** What lay where a man is now, such as an empty hole. */
function holes(before, after, man) {
  const isGone = ({ source, kind }) => /circle|rect/.test(kind) && !after.shapes.some((one) => one.source === source);
  const isMan = ({ source }) => before?.men.some(({ parts }) => parts.includes(source));
  const found = (before?.shapes ?? []).filter((one) => isGone(one) && !isMan(one));
  return found.filter(({ x, y }) => Math.hypot(x - man.x, y - man.y) < 1).map(({ source }) => source);
}
