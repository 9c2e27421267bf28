// Which games were played here? This browser keeps the one on the board, and those before it.

import { Game, newId } from "./game.js";
import { BROWSER, store, stored } from "./storage.js";

const NOW = "azpy board game";
const BEFORE = "azpy board games";
const MOST = 50; // games before

/**
 * @typedef {Object} Kept a game that was kept
 * @property {string} id of the game
 * @property {string} game its name
 * @property {string[]} players who played it
 * @property {string[]} [advisers] who advised
 * @property {any} record as `Game.toNodes` writes it
 * @property {number | null} [begun] milliseconds since 1970 when it began on the board; older ones do not say it
 * @property {string[]} at the moves to where the board stands
 * @property {boolean} isPaused
 * @property {number[]} used milliseconds of each side's clock
 * @property {number} when it was kept, in milliseconds since 1970
 */

/** Whether something that was kept is a game. */
function isKept(one) {
  const parts = [one?.record?.nodes, one?.players, one?.advisers ?? [], one?.at]; // older ones have no advisers
  return parts.every(Array.isArray) && typeof one.game === "string";
}

/** Those of a list that are games. */
function games(list) {
  return Array.isArray(list) ? list.filter(isKept) : [];
}

/** @type {Kept | null} the game on the board */
let now = games([stored(NOW)])[0] ?? null;
/** @type {Kept[] | null} the games before, as they were read last */
let known = null;
window.addEventListener("storage", () => (known = null)); // another tab wrote
/** @type {string | null} the record of the game on the board as it was kept last; null if there was no room */
let written = now === null ? null : JSON.stringify(now.record);

/** The game on the board when this page was last open. */
export function last() {
  return now;
}

/** Keeps the game on the board. One that another tab has on its board goes to the games before; where that is this
 * game, with other moves since, the two go on as two games. @returns {string} the id of the game from now on */
export function keepNow(kept) {
  const [other] = games([stored(NOW, BROWSER)]);
  const isOwn = other?.id !== kept.id || now?.id !== kept.id || written === null;
  const isShared = !isOwn && JSON.stringify(other.record) !== written;
  now = isShared ? { ...kept, id: newId() } : kept;
  if (other !== undefined && other.id !== now.id) add(other);
  const record = JSON.stringify(now.record);
  written = store(NOW, now) ? record : null;
  return now.id;
}

/** The games before, the newest first, without the one on the board. */
export function before() {
  known ??= read();
  return known.filter((one) => one.id !== now?.id);
}

/** Puts the game on the board to the games before. @returns {boolean} whether there was room for it */
export function putAside() {
  return now === null || add(now);
}

/** Takes a game out of those before: it is on the board, and kept as such. */
export function takeOut(kept) {
  write(read().filter((one) => one.id !== kept.id));
}

function read() {
  return games(stored(BEFORE, BROWSER));
}

/** Adds a game to those before, unless nothing was played. @returns {boolean} whether it is there */
function add(kept) {
  if (kept.record.nodes.length === 0) return true;
  return write([kept, ...read().filter((one) => one.id !== kept.id)].slice(0, MOST));
}

/** Where there is no room for all, the oldest go. @returns {boolean} whether the newest is kept */
function write(all) {
  known = null;
  for (let most = all.length; most >= Math.min(1, all.length); most -= 1) {
    if (store(BEFORE, all.slice(0, most), BROWSER)) return true;
  }
  return false;
}

/** A game that was kept, as it stood. */
export function restored(kept) {
  const game = Game.fromNodes(kept.record);
  game.id = kept.id;
  game.begun = typeof kept.begun === "number" ? kept.begun : null;
  let here = game.root;
  for (const move of kept.at) here = here.children.find((child) => child.move === move) ?? here;
  game.goTo(here);
  return game;
}
