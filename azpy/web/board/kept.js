// Which games were played here? This browser keeps the one on the board, and those before it.

import { Game, newId } from "./game.js";
import { BROWSER, store, stored } from "./storage.js";

// Other names are needed once something else is kept of a game.
const NOW = "azpy board game";
const ALL = "azpy board games";
const MOST = 50; // games before the one on the board

/** Whether something is a game as `keepNow` keeps it: another page of this address may have kept something else. */
const isGame = (one) => [one?.players, one?.record?.nodes].every(Array.isArray);

export let now = [stored(NOW)].find(isGame) ?? null; // the game on the board, or that was there when this page was last open
let written = JSON.stringify(now?.record); // its record as it was kept last; null if there was no room
export let isKept = true; // whether there was room for it

/** Keeps the game on the board, as the newest one if something was played. Where another tab has played on in this game
 * since, the two go on as two games. Returns the id of the game from now on. */
export function keepNow(kept) {
  const games = played();
  const there = games.find(({ id }) => id === kept.id);
  const isOwn = there === undefined || now?.id !== kept.id || written === null;
  now = isOwn || JSON.stringify(there.record) === written ? kept : { ...kept, id: newId() };
  store(NOW, now);
  const others = games.filter(({ id }) => id !== now.id);
  const all = (now.record.nodes.length > 0 ? [now, ...others] : others).slice(0, MOST + 1);
  // Where there is no room for all, the oldest go; where there is none for the newest alone, all stay as they were.
  isKept = store(ALL, all, BROWSER) || all.length === 0;
  while (!isKept && all.pop() && all.length > 0) isKept = store(ALL, all, BROWSER);
  written = isKept ? JSON.stringify(now.record) : null;
  return now.id;
}

/** The games before, the newest first, without the one on the board. */
export function before() {
  return played().filter(({ id }) => id !== now?.id);
}

function played() {
  return [stored(ALL, BROWSER)].flat().filter(isGame);
}

/** A game that was kept, as it stood; a new one in place of what cannot be read. */
export function restored({ record, id, begun = null, at }) {
  try {
    const game = Object.assign(Game.fromNodes(record), { id, begun });
    game.goTo(game.at(at) ?? game.root);
    return game;
  } catch {
    return Object.assign(new Game(), { id });
  }
}
