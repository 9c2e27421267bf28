// Where does a person load and save? The two dialogs around texts and files.

import { byId, complain, fill, make, messageOf, onClick, pictureAddress } from "./dom.js";
import { decoded } from "./encoding.js";
import { copyText, gamesIn, pngOf, readGame, save, saveText, writeGame } from "./files.js";
import { linkTo } from "./link.js";

/**
 * @param {{play: import("./play.js").Play, settings: import("./settings.js").Settings,
 *   start: (game: import("./game.js").Game) => unknown, picture: () => string}} parts `picture` is what the board shows
 */
export function bindFiles({ play, settings, start, picture }) {
  const [load, saving] = [byId("load"), byId("save")];
  const said = byId("load_said");
  const which = byId("load_game");
  let serial = 0; // of the text that is read
  /** @type {string | null} the text whose games are listed */
  let listed = null;
  let games = gamesIn("", null);
  /** @type {(query: Record<string, unknown>) => Promise<any>} */
  const ask = (query) => play.connection.ask({ model: settings.model.name, ...query }).answer;

  onClick("open_load", () => {
    said.textContent = "";
    listed = null;
    byId("load_which").hidden = true;
    load.showModal();
  });
  load.addEventListener("close", () => ++serial); // nobody wants the text that is still read
  byId("load_file").addEventListener("change", async () => {
    const [file] = byId("load_file").files;
    if (file !== undefined) byId("load_text").value = decoded(new Uint8Array(await file.arrayBuffer()));
  });
  byId("load_form").addEventListener("submit", async (/** @type {Event} */ event) => {
    event.preventDefault();
    const text = byId("load_text").value;
    if (text !== listed) {
      [listed, games] = [text, gamesIn(text, settings.model.format)];
      byId("load_which").hidden = games.length === 1;
      fill(which, games.map(({ name }) => make("option", {}, name)));
      which.selectedIndex = 0;
      if (games.length > 1) {
        said.textContent = `There are ${games.length} games: choose one and press Load.`;
        which.focus();
        return;
      }
    }
    said.textContent = "Reading …";
    const mine = ++serial;
    try {
      const { game, name, leftOut } = await readGame(games[which.selectedIndex].text, ask);
      if (!load.open || mine !== serial) return; // cancelled
      if (name !== null && name !== settings.model.game) {
        throw new Error(`this is a game of ${name}, and the network plays ${settings.model.game}`);
      }
      load.close();
      byId("load_text").value = byId("load_file").value = "";
      const started = start(game);
      const more = leftOut.length > 1 ? ` (and ${leftOut.length - 1} more)` : "";
      complain(leftOut.length === 0 ? "" : `Left out: ${leftOut[0]}${more}`);
      await started;
    } catch (error) {
      if (mine === serial) said.textContent = `This cannot be loaded: ${messageOf(error)}`;
    }
  });

  const base = () => settings.model.game.replace(/[^a-z0-9]+/gi, "_").replace(/_$/, "");
  onClick("open_save", () => {
    const { current } = play.game;
    byId("save_position").value = current.shown?.text ?? "This game has no text form for positions: save the moves.";
    byId("save_position_file").disabled = byId("copy_position").disabled = current.shown?.text == null;
    byId("save_moves").value = current.moves().join(" ");
    tell("");
    const format = settings.model.format?.toUpperCase();
    byId("save_game").hidden = byId("copy_game").hidden = format === undefined;
    byId("save_game").textContent = `${format} with variations`;
    byId("copy_game").textContent = `Copy ${format}`;
    saving.showModal();
  });
  onClick("save_record", () => {
    const record = { game: settings.model.game, ...play.game.toNodes() };
    saveText(`${base()}.json`, `${JSON.stringify(record)}\n`);
  });
  const tell = (/** @type {string} */ text, isRefused = false) => {
    byId("save_said").textContent = text;
    byId("save_said").classList.toggle("refused", isRefused);
  };
  /** Does what a button says, and says what was done, or why not. @param {string} id @param {() => unknown} act */
  const tried = (id, act) =>
    onClick(id, async () => {
      try {
        tell("");
        tell(`${(await act()) ?? ""}`);
      } catch (error) {
        tell(`This cannot be saved: ${messageOf(error)}`, true);
      }
    });
  const copy = async (/** @type {string} */ text) => {
    await copyText(text);
    return "It is on the clipboard.";
  };
  const written = () => {
    const players = settings.options.players.map((player) => player || "person");
    return writeGame(play.game, settings.model.format, players, settings.clock, ask);
  };
  tried("save_game", async () => saveText(`${base()}.${settings.model.format}`, await written()));
  tried("copy_game", async () => copy(await written()));
  tried("copy_link", () => copy(linkTo(settings.model.game, play.game)));
  tried("copy_position", () => copy(byId("save_position").value));
  tried("copy_moves", () => copy(byId("save_moves").value));
  tried("save_svg", () => save(`${base()}.svg`, pictureAddress(picture())));
  tried("save_png", async () => save(`${base()}.png`, await pngOf(picture())));
  onClick("save_position_file", () => {
    const ending = settings.model.format === "sgf" ? "sgf" : "txt";
    saveText(`${base()}_position.${ending}`, `${byId("save_position").value}\n`);
  });
  onClick("save_moves_file", () => saveText(`${base()}_moves.txt`, `${byId("save_moves").value}\n`));
}
