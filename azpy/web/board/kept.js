// Which games were played here? This browser keeps the one on the board, and those before it.

import { Game } from "./game.js";
import { store, stored } from "./settings.js";

const NOW = "azpy board game";
const BEFORE = "azpy board games";
const MOST = 50; // games before

/**
 * @typedef {Object} Kept a game that was kept
 * @property {string} game its name
 * @property {string[]} players who played it, and who advised
 * @property {any} record as `Game.toNodes` writes it
 * @property {string[]} at the moves to where the board stands
 * @property {{outcome: number, why: string} | null} ended
 * @property {boolean} isPaused
 * @property {number[]} used milliseconds of each side's clock
 * @property {number} when milliseconds since 1970
 */

/** Whether something that was kept is a game. @param {any} one */
function isKept(one) {
  return [one?.record?.nodes, one?.players, one?.at].every(Array.isArray) && typeof one.game === "string";
}

/** @type {Kept | null} the game on the board */
let now = [stored(NOW)].find(isKept) ?? null;

/** The game on the board when this page was last open. @returns {Kept | null} */
export function last() {
  return now;
}

/** Keeps the game on the board. @param {Kept} kept */
export function keepNow(kept) {
  now = kept;
  store(NOW, kept);
}

/** The games before, the newest first. Other tabs may have added some. @returns {Kept[]} */
export function before() {
  try {
    const found = JSON.parse(localStorage.getItem(BEFORE) ?? "[]");
    return found.filter(isKept);
  } catch {
    return [];
  }
}

/** Puts the game on the board to the games before, unless nothing was played. */
export function putAside() {
  if (now === null || now.record.nodes.length === 0) return;
  write([now, ...before()].slice(0, MOST));
  now = null;
}

/** Takes a game out of those before: it comes onto the board. @param {Kept} kept */
export function takeOut(kept) {
  write(before().filter((one) => one.when !== kept.when));
}

/** @param {Kept[]} games */
function write(games) {
  for (let most = games.length; most >= 0; most -= 1) {
    try {
      return localStorage.setItem(BEFORE, JSON.stringify(games.slice(0, most)));
    } catch {
      // There is no room for so many, or the browser keeps nothing.
    }
  }
}

/** A game that was kept, as it stood. @param {Kept} kept @returns {Game} */
export function restored(kept) {
  const game = Game.fromNodes(kept.record);
  let here = game.root;
  for (const move of kept.at) here = here.children.find((child) => child.move === move) ?? here;
  game.goTo(here);
  if (Number.isFinite(kept.ended?.outcome)) here.ended = { outcome: kept.ended.outcome, why: `${kept.ended.why}` };
  return game;
}
