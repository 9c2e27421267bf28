// Where does a person load and save? The two dialogs around texts and files.

import { byId, complain, fill, make, offer, onClick, pictureAddress } from "./dom.js";
import { copyText, decoded, gamesIn, linkTo, pictureFile, readGame, save, writeGame } from "./files.js";

/** `open` shows a game, and `picture` is what the board shows. */
export function bindFiles({ play, settings, open, picture }) {
  const [load, saving] = [byId("load"), byId("save")];
  const said = byId("load_said");
  const which = byId("load_game");
  let serial = 0; // of the text that is read
  let listed = null; // the text whose games are listed
  let games = [];
  const ask = (query) => play.connection.ask({ model: settings.model.name, ...query }).answer;

  onClick("open_load", () => {
    ++serial; // drop a text that is still being read from before the dialog was closed
    said.textContent = "";
    listed = null;
    byId("load_which").hidden = true;
    load.showModal();
  });
  byId("load_file").addEventListener("change", async () => {
    const [file] = byId("load_file").files;
    if (file !== undefined) byId("load_text").value = decoded(new Uint8Array(await file.arrayBuffer()));
  });
  byId("load_form").addEventListener("submit", async (event) => {
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
      const started = open(game);
      const more = leftOut.length > 1 ? ` (and ${leftOut.length - 1} more)` : "";
      complain(leftOut.length === 0 ? "" : `Left out: ${leftOut[0]}${more}`);
      await started;
    } catch (error) {
      if (mine === serial) said.textContent = `This cannot be loaded: ${error.message}`;
    }
  });

  const [what, text] = [byId("save_what"), byId("save_text")];
  /** What can be saved: its name, what it is called, how its file's name ends, and its text; a PNG has none. */
  const kinds = () => {
    const { format, game } = settings.model;
    const { current } = play.game;
    const players = settings.options.players.map((player) => (player === "" ? "person" : settings.called(player)));
    const position = `_position.${format === "sgf" ? "sgf" : "txt"}`;
    const written = () => writeGame(play.game, format, players, settings.clock, ask);
    const record = () => `${JSON.stringify({ game, ...play.game.toNodes() })}\n`;
    return [
      ["game", `The game with variations (${format?.toUpperCase()})`, `.${format}`, written],
      ["record", "The game with variations (JSON)", ".json", record],
      ["position", "This position", position, () => current.shown?.text ?? ""],
      ["moves", "The moves that lead here", "_moves.txt", () => current.moves().join(" ")],
      ["svg", "Picture (SVG)", ".svg", picture],
      ["png", "Picture (PNG)", ".png", () => ""],
    ];
  };
  const chosen = () => kinds().find(([kind]) => kind === what.value);
  let asked = 0; // times that something was tried
  /** Says what was done, or why it cannot be; what ends late leaves the last word to what was tried after it. */
  const tried = async (act) => {
    const mine = ++asked;
    const tell = (said, isRefused = false) => {
      if (mine !== asked) return;
      byId("save_said").textContent = said;
      byId("save_said").classList.toggle("refused", isRefused);
    };
    tell("");
    try {
      tell((await act()) ?? "");
    } catch (error) {
      if (error.name !== "AbortError") tell(`This cannot be saved: ${error.message}`, true); // the person cancelled
    }
  };
  const isPicture = () => what.value === "png";
  const file = async () => {
    const [, , ending] = chosen();
    const name = settings.model.game.replace(/[^a-z0-9]+/gi, "_").replace(/_$/, "") + ending;
    return isPicture() ? pictureFile(picture(), name) : new File([text.value], name, { type: "text/plain" });
  };
  const showText = () => {
    const { value } = what;
    text.hidden = isPicture();
    byId("save_picture").hidden = !text.hidden;
    byId("save_picture").src = pictureAddress(picture());
    byId("copy_text").disabled = text.hidden && navigator.clipboard?.write === undefined;
    byId("share_file").hidden = !navigator.canShare?.({ files: [new File([], "a.png", { type: "image/png" })] });
    text.value = "";
    return tried(async () => {
      const [, , , write] = chosen();
      const written = await write();
      if (what.value === value) text.value = written;
    });
  };
  const show = (kind) => {
    const lacks = { game: settings.model.format === null, position: play.game.current.shown?.text == null };
    offer("save_what", kinds().filter(([one]) => !lacks[one]));
    what.value = kind ?? what.value;
    saving.showModal();
    return showText();
  };
  onClick("open_save", () => show(null));
  onClick("share", () => show("png"));
  what.addEventListener("change", showText);
  const copied = (copy) => tried(() => copy().then(() => "It is on the clipboard."));
  const copyPicture = () => navigator.clipboard.write([new ClipboardItem({ "image/png": file() })]);
  onClick("copy_text", () => copied(() => (isPicture() ? copyPicture() : copyText(text.value))));
  onClick("copy_link", () => copied(() => copyText(linkTo(play.game))));
  onClick("share_file", () => tried(async () => navigator.share({ files: [await file()] })));
  onClick("save_file", () => tried(async () => save(await file())));
}
