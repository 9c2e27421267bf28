// Where does a person load and save? The two dialogs around texts and files.

import { byId, complain, fill, make, messageOf, offer, onClick, pictureAddress } from "./dom.js";
import { decoded } from "./encoding.js";
import { copyText, gamesIn, pngOf, readGame, save, saveText, writeGame } from "./files.js";
import { linkTo } from "./link.js";

/** @param {{play: import("./play.js").Play, settings: import("./settings.js").Settings, start: (game:
 * import("./game.js").Game) => unknown, picture: () => string}} parts `picture` is what the board shows */
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
  const text = byId("save_text");
  /** @type {Record<string, () => string | Promise<string>>} what is shown as a text */
  const texts = {
    game: () => {
      const players = settings.options.players.map((player) => (player === "" ? "person" : settings.called(player)));
      return writeGame(play.game, settings.model.format, players, settings.clock, ask);
    },
    record: () => `${JSON.stringify({ game: settings.model.game, ...play.game.toNodes() })}\n`,
    position: () => play.game.current.shown?.text ?? "",
    moves: () => play.game.current.moves().join(" "),
  };
  const tell = (/** @type {string} */ said, isRefused = false) => {
    byId("save_said").textContent = said;
    byId("save_said").classList.toggle("refused", isRefused);
  };
  /** Says what was done, or why it cannot be. @param {() => unknown} act */
  const tried = async (act) => {
    try {
      tell("");
      tell(`${(await act()) ?? ""}`);
    } catch (error) {
      tell(`This cannot be saved: ${messageOf(error)}`, true);
    }
  };
  const showText = () => {
    const what = byId("save_what").value;
    byId("copy_text").disabled = text.hidden = what === "png" || what === "svg";
    text.value = "";
    return tried(async () => {
      const written = text.hidden ? "" : await texts[what]();
      if (byId("save_what").value === what) text.value = written;
    });
  };
  onClick("open_save", () => {
    const { format } = settings.model;
    const hasText = play.game.current.shown?.text != null;
    offer("save_what", [
      ...(format === null ? [] : [["game", `The game with variations (${format.toUpperCase()})`]]),
      ["record", "The game with variations (JSON)"],
      ...(hasText ? [["position", "This position"]] : []),
      ...[["moves", "The moves that lead here"], ["svg", "Picture (SVG)"], ["png", "Picture (PNG)"]],
    ]);
    saving.showModal();
    return showText();
  });
  byId("save_what").addEventListener("change", showText);
  const copy = async (/** @type {string} */ copied) => {
    await copyText(copied);
    return "It is on the clipboard.";
  };
  onClick("copy_text", () => tried(() => copy(text.value)));
  onClick("copy_link", () => tried(() => copy(linkTo(settings.model.game, play.game))));
  onClick("save_file", () =>
    tried(async () => {
      const { format } = settings.model;
      const what = byId("save_what").value;
      if (what === "png") return save(`${base()}.png`, await pngOf(picture()));
      if (what === "svg") return save(`${base()}.svg`, pictureAddress(picture()));
      const endings = { game: `.${format}`, record: ".json", moves: "_moves.txt" };
      const ending = endings[/** @type {keyof typeof endings} */ (what)];
      saveText(base() + (ending ?? `_position.${format === "sgf" ? "sgf" : "txt"}`), text.value);
    }),
  );
}
