// Which games were played here? This browser keeps the one on the board, and those before it.

import { Game, newId } from "./game.js";
import { BROWSER, store, stored } from "./storage.js";

// Other names are needed once something else is kept of a game.
const NOW = "azpy board game";
const ALL = "azpy board games";
const MOST = 50; // games before the one on the board

export let now = stored(NOW); // the game on the board, or that was there when this page was last open
let written = JSON.stringify(now?.record); // its record as it was kept last
export let isKept = true; // whether there was room for it

/** Keeps the game on the board, as the newest one if something was played. Where another tab has played on in this game
 * since, the two go on as two games. Returns the id of the game from now on. */
export function keepNow(kept) {
  const games = played();
  const there = games.find(({ id }) => id === kept.id);
  const isShared = there !== undefined && now?.id === kept.id && JSON.stringify(there.record) !== written;
  now = isShared ? { ...kept, id: newId() } : kept;
  written = JSON.stringify(now.record);
  store(NOW, now);
  const others = games.filter(({ id }) => id !== now.id);
  const all = now.record.nodes.length > 0 ? [now, ...others] : others;
  // Where there is no room for all, the oldest go.
  let most = Math.min(all.length, MOST + 1);
  while (!store(ALL, all.slice(0, most), BROWSER) && most > 0) most -= 1;
  isKept = all.length === 0 || most > 0;
  return now.id;
}

/** The games before, the newest first, without the one on the board. */
export function before() {
  return played().filter(({ id }) => id !== now?.id);
}

function played() {
  return stored(ALL, BROWSER) ?? [];
}

/** A game that was kept, as it stood. */
export function restored({ record, id, begun, at }) {
  const game = Object.assign(Game.fromNodes(record), { id, begun });
  game.goTo(game.at(at) ?? game.root);
  return game;
}
