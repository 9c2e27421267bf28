// Which games are there? A dialog lists those that were played here and those of the run, each with a small board.

import { fetched } from "./connection.js";
import { byId, fill, make, onClick, pictureAddress } from "./dom.js";
import { foundOf, Game, RUN } from "./game.js";
import { before, restored } from "./kept.js";
import { namesOf, titleOf } from "./seats.js";

/** `open` shows a game, `goBack` one that was played here. */
export function bindArchive({ play, settings, open, goBack }) {
  const dialog = byId("archive");
  const said = byId("archive_said");
  const iterations = byId("archive_iteration");

  /** Lists the games of an iteration; of the newest one if none is named. */
  const list = async (iteration) => {
    said.textContent = "Reading …";
    try {
      const found = await fetched(iteration === "" ? "games" : `games?iteration=${iteration}`);
      const options = found.iterations.map((one) => make("option", { value: one }, `${one}`));
      fill(iterations, options.reverse());
      iterations.value = `${found.iteration}`;
      fill(byId("archive_games"), found.games.map(stored));
      said.textContent = found.games.length === 0 ? "The run has finished no iteration yet." : "";
      if (found.more) said.textContent = `Only the first ${found.games.length} games of this iteration are listed.`;
    } catch (error) {
      said.textContent = `The games cannot be read: ${error.message}`;
    }
  };

  // A board is drawn once its row comes into view.
  const watcher = new IntersectionObserver((rows) => {
    for (const { target, isIntersecting } of rows) {
      if (!isIntersecting) continue;
      watcher.unobserve(target);
      target.dispatchEvent(new Event("seen"));
    }
  });

  /** A game of a list. `end` tells how it ended, with a picture; `act` shows the game, where the server plays it. */
  const row = (text, end, act) => {
    const [said, picture] = [make("span"), make("img", { alt: "" })];
    const words = make("span", {}, text, " ", said);
    const button = make("button", { type: "button", disabled: act === null, onclick: act }, picture, words);
    button.addEventListener("seen", async () => {
      const found = await end().catch(() => null); // the row says what it can
      if (found !== null) [said.textContent, picture.src] = [found.said, pictureAddress(found.svg)];
    });
    if (act !== null) watcher.observe(button);
    return make("li", {}, button);
  };

  const stored = (game) => {
    const end = async () => {
      const { plies } = await fetched(`games/${game.game_id}`);
      return { said: "", svg: (await play.show(plies.map((ply) => ply.name), new Game())).svg };
    };
    return row(`Game ${game.game_id}: ${game.length} plies. ${game.result}`, end, () => load(game.game_id));
  };

  const load = async (number) => {
    said.textContent = "Reading …";
    try {
      const game = gameOf(await fetched(`games/${number}`));
      if (!dialog.open) return; // cancelled
      dialog.close();
      if (!byId("hints").checked) byId("hints").click(); // what was thought is a hint
      await open(game);
    } catch (error) {
      said.textContent = `This game cannot be opened: ${error.message}`;
    }
  };

  const played = (kept) => {
    const model = settings.models.find(({ game }) => game === kept.game);
    const people = kept.players.filter((player) => player === "").length;
    const who = people === 0 ? "watched" : people === 1 ? "against azpy" : "by hand";
    const count = `${kept.record.nodes.length} move${kept.record.nodes.length === 1 ? "" : "s"}`;
    const text = `${titleOf(kept.game)}, ${who}, ${new Date(kept.when).toLocaleString()}, ${count}.`;
    const end = async () => {
      const game = restored(kept);
      game.end.shown = await play.show(game.end.moves(), game, model.name);
      return { said: play.result(game.end, namesOf(model)) ?? "Not finished.", svg: game.end.shown.svg };
    };
    const act = () => {
      dialog.close();
      goBack(kept);
    };
    return row(text, end, model === undefined ? null : act);
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

/** A stored game with its searches, at its first position, as /games/NUMBER tells it. */
function gameOf(stored) {
  const game = new Game();
  for (const ply of stored.plies) {
    if (ply.search !== undefined) game.current.finds.set(RUN, foundOf(answerOf(ply)));
    game.play(ply.name);
    Object.assign(game.current, { short: ply.short, player: ply.player < 0 ? null : ply.player });
  }
  if (stored.resigned) game.current.ended = { outcome: stored.outcome, why: "by resignation" };
  game.goTo(game.root);
  return game;
}

/** A stored search as an answer of the server. */
function answerOf(ply) {
  const found = ply.search.filter(({ visits }) => visits > 0).sort((one, other) => other.visits - one.visits);
  const visits = found.reduce((sum, one) => sum + one.visits, 0);
  // Of single moves a run stores no value.
  const told = ({ name, visits, prior }, order) => ({ move: name, visits, prior, value: null, order, pv: [name] });
  const { player, root_value: value, root_values: values } = ply;
  const rootInfo = { player, visits, value, values, network: ply.network.replace(/^0x/, ""), reused: 0, stop: "" };
  return { isStored: true, isDuringSearch: false, moveInfos: found.map(told), rootInfo };
}
