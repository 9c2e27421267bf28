// Which places does the board have, and what lies on each? The server's picture says it, for people who do not see it.

// A shape has its middle (x, y), its size (0 for a text), and its attributes by name (`at`).

const SHAPE = /<(circle|rect|polygon|path|line|text)\b([^>]*)>(?:([^<]*)<\/text>)?/g;
/** Men of chess by their class, and those of the Wall Game by their letter. */
const MEN = { k: "king", q: "queen", r: "rook", b: "bishop", n: "knight", p: "pawn", C: "cat", M: "mouse" };
/** The players' colors (rust/games/src/svg.rs), by player. The Wall Game has two of its own. */
const COLORS = [
  ...["#d03b2f #c0392b red", "#2463c4 #2a6fbb blue", "#2e8b4f green", "#d99a1c yellow", "#7d4bb0 purple"],
  "#6b4a35 brown",
];
const STONES = { white: ["#ffffff", "#fdfdf8"], black: ["#262626", "#161616", "#111111"] };

/** The places of the board, also those that cannot be touched now. The game keeps them for a roll, which has none. */
export function placesOf({ svg, places }, game) {
  if (places.length > 0) game.places = places;
  const shapes = shapesOf(svg);
  return game.places.map((touch) => ({ touch, man: manOn(touch, shapes, game.names) }));
}

/** What a picture shows, from the bottom up. */
export function shapesOf(svg) {
  return [...svg.matchAll(SHAPE)].map(shapeOf);
}

function shapeOf([source, kind, attributes, text = ""]) {
  const at = (name) => new RegExp(`\\s${name}="([^"]*)"`).exec(attributes)?.[1] ?? "";
  const [x, y, wide, high, size] = ["x", "y", "width", "height", "font-size"].map((name) => Number(at(name)));
  const numbers = (kind === "line" ? ["x1", "y1", "x2", "y2"].map(at) : (at("points") + at("d")).match(/-?[\d.]+/g)) ?? [];
  const [[left, right], [top, bottom]] = [0, 1].map((axis) => {
    const some = numbers.map(Number).filter((_, index) => index % 2 === axis);
    return [Math.min(...some), Math.max(...some)];
  });
  const shift = /translate\((\S+) (\S+)\)/.exec(at("transform"));
  const found = { kind, text, at, source, wide, high };
  if (shift !== null) return { ...found, x: Number(shift[1]) + 20, y: Number(shift[2]) + 20, wide: 40, high: 40 };
  const [around, radius] = [{ x: Number(at("cx")), y: Number(at("cy")) }, Number(at("r"))];
  if (kind === "circle") return { ...found, ...around, wide: 2 * radius, high: 2 * radius };
  if (kind === "text") return { ...found, x, y: y - 0.35 * size };
  if (kind === "rect") return { ...found, x: x + wide / 2, y: y + high / 2 };
  return { ...found, x: (left + right) / 2, y: (top + bottom) / 2, wide: right - left, high: bottom - top };
}

/** What lies on a place, in words. */
function manOn([, left, top, width, height], shapes, sides) {
  const inside = shapes.filter(({ x, y, at }) => {
    const isIn = x > left && x < left + width && y > top && y < top + height;
    return isIn && Number(at("width")) <= width && at("class") !== "name"; // the ground lies below
  });
  const men = [];
  let count = 0; // that a high stack says of itself
  for (const { kind, text, at } of inside.sort((one, other) => other.y - one.y)) {
    // Of the two strokes of a cross one counts.
    const isStroke = kind === "line" ? Number(at("x1")) < Number(at("x2")) && at("y1") < at("y2") : at("fill") === "none";
    const whose = sideOf(at(isStroke ? "stroke" : "fill"), sides, !isStroke);
    if (kind === "path" && at("stroke-width") === "6") men.push("wall");
    else if (kind !== "text" && whose !== null) men.push([whose, MEN[at("class")]].filter(Boolean).join(" "));
    else if (/^[CM]$/.test(text) && (whose !== null || men.length > 0)) men.push(`${whose ?? men.pop()} ${MEN[text]}`);
    else if (/^\d+$/.test(text)) count = Number(text);
    else if (/^\w+$/.test(text)) men.push(text);
  }
  if (new Set(men).size > 1) return men.join(", ") + (height > 2 * width ? " from the bottom" : "");
  return men.length > 1 ? `${Math.max(count, men.length)} ${men[0]}` : (men[0] ?? "");
}

/** Whether a shape is a man by itself, or a die. */
export function isMan({ kind, at, wide }, sides) {
  if ((Object.hasOwn(MEN, at("class")) && kind === "path") || at("class") === "tile") return true;
  const isDie = kind === "rect" && at("rx") === "6";
  return (isDie || (kind === "circle" && wide > 12)) && sideOf(at("fill"), sides, true) !== null;
}

/** Whose color it is. Stones fill a shape. */
function sideOf(color, sides, isStone) {
  const player = color === "" ? -1 : COLORS.findIndex((one) => one.includes(color));
  const name = sides[player] ?? "player";
  if (player >= 0) return name.startsWith("player") ? COLORS[player].replace(/.* /, "") : name.toLowerCase();
  const stone = Object.entries(STONES).find(([, colors]) => isStone && colors.includes(color))?.[0];
  return sides.map((one) => one.toLowerCase()).find((one) => one === stone) ?? null;
}
