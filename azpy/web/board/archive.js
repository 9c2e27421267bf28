// Which games did the run play, and what was thought at the time? A dialog lists them, and opens one.

import { fetched } from "./connection.js";
import { byId, fill, make } from "./dom.js";
import { Game } from "./game.js";
import { messageOf } from "./play.js";

/**
 * @param {{start: (game: Game) => unknown}} parts `start` shows a game
 * @returns {void}
 */
export function bindArchive({ start }) {
  const dialog = byId("archive");
  const said = byId("archive_said");
  const iterations = byId("archive_iteration");

  /** Lists the games of an iteration; of the newest one if none is named. @param {string} iteration */
  const list = async (iteration) => {
    said.textContent = "Reading …";
    try {
      const found = await fetched(iteration === "" ? "/games" : `/games?iteration=${iteration}`);
      const options = found.iterations.map((/** @type {number} */ one) => make("option", { value: one }, `${one}`));
      fill(iterations, options.reverse());
      iterations.value = `${found.iteration}`;
      fill(byId("archive_games"), found.games.map(row));
      said.textContent = found.games.length === 0 ? "The run has finished no iteration yet." : "";
    } catch (error) {
      said.textContent = `The games cannot be read: ${messageOf(error)}`;
    }
  };

  /** @param {any} game */
  const row = (game) => {
    const text = `Game ${game.game_id}: ${game.length} plies. ${game.result}`;
    const button = make("button", { type: "button" }, text);
    button.addEventListener("click", () => open(game.game_id));
    return make("li", {}, button);
  };

  /** @param {number} number */
  const open = async (number) => {
    said.textContent = "Reading …";
    try {
      const game = gameOf(await fetched(`/games/${number}`));
      if (!dialog.open) return; // cancelled
      dialog.close();
      if (!byId("hints").checked) byId("hints").click(); // what was thought is a hint
      await start(game);
    } catch (error) {
      said.textContent = `This game cannot be opened: ${messageOf(error)}`;
    }
  };

  byId("open_archive").addEventListener("click", () => {
    dialog.showModal();
    list("");
  });
  iterations.addEventListener("change", () => list(iterations.value));
  byId("archive_cancel").addEventListener("click", () => dialog.close());
}

/**
 * A stored game with its searches, at its first position.
 * @param {any} stored as /games/NUMBER tells it
 * @returns {Game}
 */
function gameOf(stored) {
  const game = new Game();
  for (const ply of stored.plies) {
    if (ply.search !== undefined) game.current.found = foundOf(ply);
    game.play(ply.name);
    Object.assign(game.current, { short: ply.short, player: ply.player < 0 ? null : ply.player });
  }
  if (stored.resigned) game.current.ended = { outcome: stored.outcome, why: "by resignation" };
  game.goTo(game.root);
  return game;
}

/** What a stored search found, as an answer of the server. @param {any} ply */
function foundOf(ply) {
  const searched = ply.search.filter((/** @type {any} */ one) => one.visits > 0);
  searched.sort((/** @type {any} */ one, /** @type {any} */ other) => other.visits - one.visits);
  const visits = searched.reduce((/** @type {number} */ sum, /** @type {any} */ one) => sum + one.visits, 0);
  const moveInfos = searched.map((/** @type {any} */ one, /** @type {number} */ order) => ({
    move: one.name,
    visits: one.visits,
    prior: one.prior,
    value: null, // of single moves a run stores none
    order,
    pv: [one.name],
  }));
  const network = ply.network.replace(/^0x/, "");
  const rootInfo = { player: ply.player, visits, value: ply.root_value, network, reused: 0, stop: "" };
  const value = ply.player === 0 ? ply.root_value : -ply.root_value;
  return { model: "run", value, visits, answer: { isStored: true, isDuringSearch: false, moveInfos, rootInfo } };
}
