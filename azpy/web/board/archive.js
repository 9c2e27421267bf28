// Which games are there? A dialog lists those that were played here and those of the run, and opens one.

import { fetched } from "./connection.js";
import { byId, fill, make, messageOf, onClick } from "./dom.js";
import { Game, RUN } from "./game.js";
import { before } from "./kept.js";

/**
 * @param {{start: (game: Game) => unknown, goBack: (kept: import("./kept.js").Kept) => unknown,
 *   plays: (game: string) => boolean}} parts `start` shows a game, `goBack` one that was played here; `plays` says
 *   whether the server plays a game
 * @returns {void}
 */
export function bindArchive({ start, goBack, plays }) {
  const dialog = byId("archive");
  const said = byId("archive_said");
  const iterations = byId("archive_iteration");

  /** Lists the games of an iteration; of the newest one if none is named. @param {string} iteration */
  const list = async (iteration) => {
    said.textContent = "Reading …";
    try {
      const found = await fetched(iteration === "" ? "games" : `games?iteration=${iteration}`);
      const options = found.iterations.map((/** @type {number} */ one) => make("option", { value: one }, `${one}`));
      fill(iterations, options.reverse());
      iterations.value = `${found.iteration}`;
      fill(byId("archive_games"), found.games.map(row));
      said.textContent = found.games.length === 0 ? "The run has finished no iteration yet." : "";
      if (found.more) said.textContent = `Only the first ${found.games.length} games of this iteration are listed.`;
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
      const game = gameOf(await fetched(`games/${number}`));
      if (!dialog.open) return; // cancelled
      dialog.close();
      if (!byId("hints").checked) byId("hints").click(); // what was thought is a hint
      await start(game);
    } catch (error) {
      said.textContent = `This game cannot be opened: ${messageOf(error)}`;
    }
  };

  /** @param {import("./kept.js").Kept} kept */
  const played = (kept) => {
    const sides = kept.players.map((player) => player || "person").join(" against ");
    const text = `${new Date(kept.when).toLocaleString()}: ${kept.game}, ${kept.record.nodes.length} moves, ${sides}`;
    const button = make("button", { type: "button", disabled: !plays(kept.game) }, text);
    button.addEventListener("click", () => {
      dialog.close();
      goBack(kept);
    });
    return make("li", {}, button);
  };

  onClick("open_archive", () => {
    const rows = before().map(played);
    fill(byId("games_before"), rows);
    byId("no_games_before").hidden = rows.length > 0;
    dialog.showModal();
    if (!byId("of_run").hidden) list("");
  });
  iterations.addEventListener("change", () => list(iterations.value));
}

/**
 * A stored game with its searches, at its first position.
 * @param {any} stored as /games/NUMBER tells it
 * @returns {Game}
 */
function gameOf(stored) {
  const game = new Game();
  for (const ply of stored.plies) {
    if (ply.search !== undefined) game.current.finds.set(RUN, foundOf(ply));
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
  const { player, root_value: value, root_values: values } = ply;
  const rootInfo = { player, visits, value, values, network, reused: 0, stop: "" };
  const each = values ?? (player === 0 ? [value, -value] : [-value, value]);
  return { values: each, visits, answer: { isStored: true, isDuringSearch: false, moveInfos, rootInfo } };
}
