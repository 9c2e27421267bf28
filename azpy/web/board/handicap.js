// How does a new game begin? In Go perhaps with handicap stones and another komi.

import { byId, offer, show } from "./dom.js";
import { Game } from "./game.js";

const USUAL_SIZE = 9; // of a game that does not say its size
const HANDICAP_KOMI = 0.5; // Black has its stones, so that White gets only what prevents a draw

/** The size of a board of Go; null for another game. */
function sizeOf(name) {
  if (!/^go\b/.test(name)) return null;
  return Number(/size=(\d+)/.exec(name)?.[1] ?? USUAL_SIZE);
}

/** Offers what can be chosen at the start of a game. */
export function offerStart(name) {
  const size = sizeOf(name);
  const most = size === null ? 0 : pointsOf(size).length;
  const counts = Array.from({ length: Math.max(0, most - 1) }, (_, index) => [`${index + 2}`, `${index + 2} stones`]);
  offer("handicap", [["", "none"], ...counts], size !== null);
  show("komi", size !== null);
}

/** A game that begins as the dialog says. */
export function newGame(name) {
  const size = sizeOf(name);
  const [count, given] = [Number(byId("handicap").value), byId("komi")];
  const stones = size === null ? [] : stonesOf(size, count);
  const isOwn = given.value !== "" && given.validity.valid;
  if (size === null || (stones.length === 0 && !isOwn)) return Game.begin();
  const komi = isOwn ? Number(given.value) : HANDICAP_KOMI;
  const placed = stones.length === 0 ? "" : `HA[${count}]AB${stones.map((point) => `[${point}]`).join("")}`;
  // With a point, as servers write hundredths without one: KM[375] is 7.5 points.
  const game = Game.begin(`(;GM[1]FF[4]SZ[${size}]KM[${komi.toFixed(1)}]${placed})`);
  if (count > 0) game.about = { players: null, ranks: null, result: null, tags: [["HA", `${count}`]] };
  return game;
}

/** The points of handicap stones as SGF names them, in their order: the corners, the sides' middles, the middle.
 * (The Go Text Protocol, 4.1.1; rows count from above.) */
function pointsOf(size) {
  if (size < 7) return [];
  const edge = size < 13 ? 2 : 3;
  const [low, middle, high] = [edge, (size - 1) / 2, size - 1 - edge];
  const corners = [[low, high], [high, low], [low, low], [high, high]];
  const inner = [[low, middle], [high, middle], [middle, high], [middle, low], [middle, middle]];
  const points = size % 2 === 1 && size > 7 ? [...corners, ...inner] : corners;
  return points.map(([column, row]) => String.fromCharCode(97 + column, 97 + row));
}

/** Odd numbers of stones from 5 on have one in the middle. */
function stonesOf(size, count) {
  const points = pointsOf(size).slice(0, count);
  const hasMiddle = count > 4 && count % 2 === 1;
  return hasMiddle ? [...points.slice(0, -1), pointsOf(size)[8]] : points;
}
