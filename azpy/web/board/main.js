// How do the parts make the page? Here they meet; each part knows only its own.

import { Analysis } from "./analysis.js";
import { bindArchive } from "./archive.js";
import { Board } from "./board.js";
import { Clock } from "./clock.js";
import { Connection, LocalSocket, Lost } from "./connection.js";
import { Controls } from "./controls.js";
import { Agreement } from "./dead.js";
import { Deal } from "./deal.js";
import { bindFiles } from "./dialogs.js";
import { announce, byId, complain, onClick } from "./dom.js";
import { hearOf, seatAsAsked, tell } from "./embed.js";
import { openLink } from "./files.js";
import { Game } from "./game.js";
import { before, isKept, keepNow, now, restored } from "./kept.js";
import { enter } from "./login.js";
import { Mistakes } from "./mistakes.js";
import { showComment, showHeaders, showMoves } from "./moves.js";
import { Play } from "./play.js";
import { seats } from "./seats.js";
import { Settings } from "./settings.js";
import { Setup } from "./setup.js";
import { sound } from "./sound.js";

let about = {}; // what the server says of itself; `local` where the page has no server
const connect = () =>
  about.local ? new LocalSocket() : new WebSocket(new URL("ws", location.href.replace(/^http/, "ws")).href);
const connection = new Connection(connect, async () => {
  about = await enter();
  byId("of_run").hidden = about.run === null;
  byId("logout").hidden = !about.token;
});
const settings = new Settings(() => play.refresh());
const play = new Play(connection, new Game(), () => settings.options, render);
const board = new Board(play, settings);
const agreement = new Agreement(play, board);
const controls = new Controls(play, settings, gameBefore, undo);
const analysis = new Analysis(play);
const mistakes = new Mistakes(play, analysis);
new Setup(play, settings, {
  onStart: begin,
  onKeep: () => {
    play.isPaused = false;
    turnToPerson();
    clock.follow(settings.clock);
    return play.refresh();
  },
});
const GONE = "The program that serves this page has ended, or cannot be reached. Start it again";
let deal = null; // in place of all else, where the game hides something
const clock = new Clock((late) => play.end(late, "on time"));

/** Begins with a game, from its first position or where the record stands, and with the milliseconds of its clocks. */
function start(game, used) {
  complain(isKept ? "" : "This browser has no space left to keep the previous game.");
  analysis.stop("");
  settings.offerRun(game.isStored);
  const { names, isZeroSum, model } = settings;
  Object.assign(game, { name: model.game, names, isZeroSum, isPaired: model.format === "pgn" });
  byId("main").inert = false;
  clock.reset(settings.clock, names.map((_, player) => used?.[player] ?? 0));
  const began = play.begin(game);
  keepGame();
  return began;
}

/** Goes on with a game that was kept. */
function goBack(kept) {
  settings.choose(kept.game);
  settings.take(kept.players, kept.adviser);
  play.isPaused = kept.isPaused;
  if (kept.id !== now?.id) turnToPerson();
  return start(restored(kept), kept.used);
}

/** Shows the board from the side of the only person of two players. */
function turnToPerson() {
  const { players } = settings.options;
  const isOnly = players.filter((player) => player === "").length === 1;
  if (players.length === 2 && isOnly && board.isTurned !== (players[1] === "")) board.turn();
}

/** Shows a game that was played elsewhere. */
function open(game) {
  play.isPaused = true;
  return start(game);
}

/** Begins a new game, with the newest network. */
async function begin() {
  play.isPaused = false;
  turnToPerson();
  await renew(settings.model.name);
  return start(Game.begin());
}

/** The game before the one on the board, if the server plays it. */
function gameBefore() {
  return before().find(({ game }) => plays(game));
}

function plays(game) {
  return settings.models.some((model) => model.game === game);
}

/** Takes back what a person did; where there is nothing, goes back to the game before. */
function undo() {
  if (play.game.current.ended !== null) clock.forgive();
  if (play.canUndo) return play.undo();
  const kept = gameBefore();
  if (kept !== undefined) return goBack(kept);
}

/** Keeps the game on the board, with what its clocks show. */
function keepGame() {
  const { game, isPaused } = play;
  if (game.name === "") return;
  const { players, adviser } = settings.options;
  game.id = keepNow({
    ...{ id: game.id, game: game.name, players, adviser, isPaused, used: clock.shown },
    ...{ record: game.toNodes(), begun: game.begun, at: game.current.moves(), when: Date.now() },
  });
}

/** Draws the page, for the same position or another one. */
function render(isNew) {
  const { game } = play;
  const position = game.current;
  const { shown, mover, outcome, children } = position;
  const { canPlay } = controls;
  const isShown = isNew && shown !== null;
  const status = (isNew || shown === null ? null : agreement.said) ?? controls.status;
  if (isShown) {
    board.show(canPlay, status);
    agreement.reset();
    hear(position);
  }
  if (isNew || shown === null) keepGame();
  controls.showSteps(position);
  showComment(position);
  showMoves(game, settings.options, isShown, (chosen) => play.goTo(chosen));
  analysis.show(position, board.candidates, isNew);
  if (shown === null) {
    // Nothing of the position before can be played any more.
    byId("board").dataset.state = "busy";
    byId("resign").disabled = true;
    if (!connection.isOpen || play.isRefused) byId("status").textContent = status;
    board.close();
    return clock.run(null);
  }
  controls.show(canPlay, status);
  mistakes.show(position);
  showHeaders(game.about, shown.komi);
  const isOn = settings.clock !== null;
  for (const one of seats("clock")) one.hidden = !isOn;
  const isTimed = isOn && outcome === null && children.length === 0 && !play.isPaused && connection.isOpen;
  if (isTimed && clock.last === mover && shown.player !== mover && clock.last !== null) clock.endTurn(clock.last);
  clock.run(isTimed ? shown.player : null);
}

let heard = null; // the position that was heard of last

/** Sounds a move that leads to a position, and tells the page around this one. */
function hear(position) {
  if (position === heard) return;
  const isOver = position.outcome !== null;
  tell(isOver ? "end" : "move", { moves: position.moves(), result: play.result(position) });
  if (heard !== null && position.parent === heard) {
    const [before, after] = [heard, position].map(({ shown }) => shown?.captured.join("").length ?? 0);
    sound(isOver ? "end" : before < after ? "take" : "move");
  }
  heard = position;
}

onClick("problem_close", () => complain(""));
onClick("turn", () => board.turn());
onClick("logout", async () => {
  await fetch("logout", { method: "POST" });
  location.reload();
});
for (const button of document.querySelectorAll("dialog [id$=_cancel]")) {
  onClick(button.id, () => button.closest("dialog")?.close());
}
byId("comment").addEventListener("input", () => {
  play.game.current.comment = byId("comment").value;
  render(false);
  keepGame();
});
onClick("rematch", () => {
  const { players } = settings.chosen;
  settings.take([...players.slice(-1), ...players.slice(0, -1)]); // each seat gets the player of the one before
  return begin();
});
hearOf(() => deal?.begin() ?? begin());
window.addEventListener("pagehide", keepGame);
window.addEventListener("resize", () => play.game.name !== "" && render(false));

/** Has the server load the newest model of a run, where a run is played that may still train. */
async function renew(model) {
  if (!about.renews) return;
  try {
    const answer = await connection.ask({ action: "renew", model }).answer;
    if (answer.changed) announce("A newer model was loaded.");
  } catch (error) {
    complain(`The newest model cannot be loaded: ${error.message}`);
  }
}

async function main() {
  byId("unstarted").remove();
  bindFiles({ play, settings, open, picture: () => board.svg });
  bindArchive({ play, settings, open, goBack });
  const connected = byId("connected");
  const stop = (why) => {
    [connected.className, connected.textContent] = ["state lost", why];
    play.isThinking = false;
    if (play.game.name === "") byId("status").textContent = why;
    else render(true);
  };
  connection.addEventListener("lost", ({ detail: isGone }) => {
    const what = about.local ? "The search stopped" : `The connection is lost${isGone ? ": nothing answers" : ""}`;
    const why = `${what}. Trying again …`;
    const isNew = connected.textContent !== why; // said once, so that it can be closed
    stop(why);
    if (isGone && isNew) complain(`${GONE}${deal === null ? ": the game goes on here" : ""}.`);
  });
  connection.addEventListener("ended", () => {
    stop("This page cannot play.");
    if (byId("problem").hidden) complain("This page cannot play. Reload it, or have it exported again.");
  });
  const openLinked = () => openLink(connection, settings, open);
  window.addEventListener("hashchange", async () => deal === null && complain((await openLinked()) ?? ""));
  connection.addEventListener("open", async () => {
    complain("");
    [connected.className, connected.textContent] = ["state open", about.local ? "plays in this browser" : "connected"];
    try {
      const { models } = await connection.ask({ action: "query_models" }).answer;
      const [model] = models;
      const isFirst = deal === null && settings.models.length === 0;
      const hidden = model.hides ? model.game : undefined;
      if (!isFirst && hidden !== deal?.model.game) return location.reload(); // the server is another one now
      if (model.hides) {
        if (deal !== null) return; // that the game has ended stays to be read
        deal = new Deal(connection, model, () => renew(model.name));
        return deal.begin();
      }
      const isSame = settings.offer(models);
      play.game.know(models);
      if (isSame) return await play.refresh();
      if (isFirst) seatAsAsked(settings);
      if (isFirst) turnToPerson();
      const problem = await openLinked();
      if (problem === null) return;
      const kept = isFirst ? now : null;
      const started = kept !== null && plays(kept.game) ? goBack(kept) : start(Game.begin());
      complain(problem);
      await started;
    } catch (error) {
      if (!(error instanceof Lost)) throw error;
    }
  });
  await connection.open();
}

main().catch((error) => complain(`The page cannot start: ${error.message}`));
