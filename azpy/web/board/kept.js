// Which games were played here? This browser keeps the one on the board, and those before it.

import { Game, newId } from "./game.js";
import { BROWSER, store, stored } from "./storage.js";

const NOW = "azpy board game";
const BEFORE = "azpy board games";
const MOST = 50; // games before

/** Those of a list that are games as `keepGame` keeps them: the name of the game, who played, the record, and
 * the moves to where the board stands. */
function games(list) {
  const parts = (one) => [one?.record?.nodes, one?.players, one?.at, one?.used ?? []];
  const isGame = (one) => typeof one?.game === "string" && parts(one).every(Array.isArray) && isRecord(one.record);
  return Array.isArray(list) ? list.filter(isGame) : [];
}

/** Whether a record has moves, notes and tags as `Game.toNodes` writes them. */
function isRecord({ nodes, notes = {}, tags = [] }) {
  const areLists = (all) => Array.isArray(all) && all.every(Array.isArray);
  const areNotes = (one) => one !== null && areLists(Object.values(one));
  const isMove = ([, name, short, , noted = {}]) => [name, short ?? ""].every((one) => typeof one === "string") && areNotes(noted);
  return areLists(nodes) && areLists(tags) && areNotes(notes) && nodes.every(isMove);
}

let now = games([stored(NOW)])[0] ?? null; // the game on the board
let known = null; // the games before, as they were read last
window.addEventListener("storage", () => (known = null)); // another tab wrote
// The record of the game on the board as it was kept last; null if there was no room.
let written = now === null ? null : JSON.stringify(now.record);

/** The game on the board when this page was last open. */
export function last() {
  return now;
}

/** Keeps the game on the board. One that another tab has on its board goes to the games before; where that is this
 * game, with other moves since, the two go on as two games. Returns the id of the game from now on. */
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

/** Puts the game on the board to the games before. Returns whether there was room for it. */
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

/** Adds a game to those before, unless nothing was played. Returns whether there was room for it. */
function add(kept) {
  if (kept.record.nodes.length === 0) return true;
  return write([kept, ...read().filter((one) => one.id !== kept.id)].slice(0, MOST));
}

/** Where there is no room for all, the oldest go. Returns whether the newest is kept. */
function write(all) {
  known = null;
  for (let most = all.length; most >= Math.min(1, all.length); most -= 1) {
    if (store(BEFORE, all.slice(0, most), BROWSER)) return true;
  }
  return false;
}

/** A game that was kept, as it stood. */
export function restored({ record, id, begun, at }) {
  const game = Object.assign(Game.fromNodes(record), { id, begun: Number.isFinite(begun) ? begun : null });
  game.goTo(game.at(at) ?? game.root);
  return game;
}
