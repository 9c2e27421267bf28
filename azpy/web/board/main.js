// How do the parts make the page? Here they meet; each part knows only its own.

import { Analysis } from "./analysis.js";
import { bindArchive } from "./archive.js";
import { Board } from "./board.js";
import { Clock } from "./clock.js";
import { Connection, Lost } from "./connection.js";
import { Controls } from "./controls.js";
import { Agreement } from "./dead.js";
import { Deal } from "./deal.js";
import { bindFiles } from "./dialogs.js";
import { announce, byId, complain, messageOf, onClick } from "./dom.js";
import { hearOf, seatAsAsked, tell } from "./embed.js";
import { Game } from "./game.js";
import { before, keepNow, last, putAside, restored, takeOut } from "./kept.js";
import { openLink } from "./link.js";
import { LocalSocket } from "./local.js";
import { enter } from "./login.js";
import { Mistakes } from "./mistakes.js";
import { showMoves } from "./moves.js";
import { bindComment, showComment, showHeaders } from "./notes.js";
import { Play } from "./play.js";
import { newGame } from "./handicap.js";
import { seats } from "./seats.js";
import { Settings } from "./settings.js";
import { Setup } from "./setup.js";
import { sound } from "./sound.js";

/** What the server says of itself; `local` where the page has no server. */
let about = { version: "", run: null, renews: false, token: false };
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
  onStart: (game) => begin(game),
  onKeep: () => {
    play.isPaused = false;
    turnToPerson();
    clock.follow(settings.clock);
    return play.refresh();
  },
});
const GONE = "The program that serves this page has ended, or cannot be reached. Start it again";
/** @type {Deal | null} in place of all else, where the game hides something */
let deal = null;
let begun = ""; // the name of the game on the board; empty before the first
const clock = new Clock((late) => play.end(late, "on time"));

/** Begins with a game, from its first position or where the record stands. The one on the board goes to those before.
 * @param {Game} game @param {number[]} [used] milliseconds of the clocks */
function start(game, used) {
  complain(game.id === last()?.id || putAside() ? "" : "This browser has no space left to keep the previous game.");
  analysis.stop("");
  settings.offerRun(game.isStored);
  play.names = settings.names;
  game.names = play.names;
  game.isZeroSum = settings.isZeroSum;
  begun = settings.model.game;
  byId("main").inert = false;
  game.isPaired = settings.model.format === "pgn";
  clock.reset(settings.clock, used ?? game.names.map(() => 0));
  const began = play.begin(game);
  keepGame();
  return began;
}

/** Goes on with a game that was kept. */
function goBack(kept) {
  let game;
  try {
    game = restored(kept);
  } catch {
    game = new Game(); // something else was kept
  }
  settings.choose(kept.game);
  settings.take(kept.players, kept.advisers ?? []);
  play.isPaused = kept.isPaused;
  if (kept.id !== last()?.id) turnToPerson();
  const started = start(game, kept.used);
  takeOut(kept);
  return started;
}

/** Shows the board from the side of the only person of two players. */
function turnToPerson() {
  const { players } = settings.options;
  const isOnly = players.filter((player) => player === "").length === 1;
  if (players.length === 2 && isOnly) board.turnTo(players[1] === "");
}

/** Begins a new game, with the newest network. */
async function begin(game) {
  play.isPaused = false;
  turnToPerson();
  if (about.renews) await renew();
  return start(game);
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
  if (begun === "") return;
  const { game, isPaused } = play;
  const { players, adviser, beside } = settings.options;
  const own = { record: game.toNodes(), begun: game.begun, at: game.current.moves() };
  const kept = { ...own, id: game.id, players, advisers: [adviser, beside] };
  game.id = keepNow({ ...kept, game: begun, isPaused, used: clock.shown, when: Date.now() });
}

/** Draws the page. @param {boolean} isNew whether the position is another one */
function render(isNew) {
  const { game } = play;
  const position = game.current;
  const shown = position.shown;
  if (shown === null) {
    // Nothing of the position before can be played any more.
    byId("board").dataset.state = "busy";
    byId("resign").disabled = true;
    if (!connection.isOpen || play.isRefused) byId("status").textContent = controls.status;
    keepGame();
    showComment(position);
    showMoves(game, null, 0, false, (chosen) => play.goTo(chosen));
    analysis.show(position, play.names, (name) => name);
    controls.showSteps(position);
    board.close();
    clock.run(null);
    return;
  }
  const { hints, adviser, beside, hintSimulations } = settings.options;
  const answer = hints ? (position.finds.get(adviser)?.answer ?? null) : null;
  const other = beside === "" ? null : (position.finds.get(beside)?.answer.moveInfos ?? []);
  const label = (name) => shown.actions.find((one) => one.name === name)?.short ?? name;
  const { canPlay } = controls;
  const status = (isNew ? null : agreement.said) ?? controls.status;
  if (isNew) {
    board.show(position, canPlay, status);
    agreement.reset();
    keepGame();
    hear(position);
  }
  controls.show(canPlay, status);
  mistakes.show(position);
  showComment(position);
  showHeaders(game.about, shown.komi);
  showMoves(game, hints ? adviser : null, hintSimulations, isNew, (chosen) => play.goTo(chosen));
  board.candidates.show(answer?.moveInfos ?? [], label, isNew, other);
  analysis.show(position, play.names, label);
  const isTimed = position.outcome === null && position.children.length === 0 && !play.isPaused && connection.isOpen;
  const isOn = settings.clock !== null;
  for (const one of seats("clock")) one.hidden = !isOn;
  const { mover } = position;
  if (isOn && isTimed && clock.last === mover && shown.player !== mover && clock.last !== null) clock.endTurn(clock.last);
  clock.run(isOn && isTimed ? shown.player : null);
}

/** @type {import("./game.js").Position | null} the position that was heard of last */
let heard = null;

/** Sounds a move that leads to a position. */
function hear(position) {
  if (position !== heard) tell(position.outcome === null ? "move" : "end", { moves: position.moves(), result: play.result(position) });
  if (position !== heard && position.parent !== null && position.parent === heard) {
    const [before, after] = [heard.shown?.captured, position.shown?.captured].map((taken) => taken?.join("") ?? "");
    const isTaken = before.length < after.length;
    sound(position.outcome !== null ? "end" : isTaken ? "take" : "move");
  }
  heard = position;
}

function bind() {
  onClick("problem_close", () => complain(""));
  onClick("turn", () => board.turn());
  onClick("logout", async () => {
    await fetch("logout", { method: "POST" });
    location.reload();
  });
  for (const button of document.querySelectorAll("dialog [id$=_cancel]")) {
    onClick(button.id, () => button.closest("dialog")?.close());
  }
  onClick("rematch", () => {
    settings.swap();
    return begin(newGame(settings.model.game));
  });
  hearOf(() => deal?.begin() ?? begin(newGame(settings.model.game)));
  window.addEventListener("pagehide", keepGame);
  window.addEventListener("resize", () => begun !== "" && render(false));
}

/** Has the server load the newest model of a run, where a run is played that may still train. */
async function renew(model = settings.model.name) {
  try {
    const answer = await connection.ask({ action: "renew", model }).answer;
    if (answer.changed) announce("A newer model was loaded.");
  } catch (error) {
    complain(`The newest model cannot be loaded: ${messageOf(error)}`);
  }
}

/** Says how the connection stands. */
function tellConnection(kind, text) {
  byId("connected").className = `state ${kind}`;
  byId("connected").textContent = text;
}

async function main() {
  byId("unstarted").remove();
  bind();
  const open = (game) => {
    play.isPaused = true;
    return start(game);
  };
  bindFiles({ play, settings, start: open, picture: () => board.svg });
  bindComment((text) => {
    play.game.current.comment = text;
    render(false);
    keepGame();
  });
  bindArchive({ play, settings, start: open, goBack });
  connection.addEventListener("problem", (event) => complain(event.detail));
  const stop = (why) => {
    tellConnection("lost", why);
    play.isThinking = false;
    if (begun === "") byId("status").textContent = why;
    else render(true);
  };
  connection.addEventListener("lost", (event) => {
    const isGone = event.detail;
    const why = about.local ? "The search stopped" : `The connection is lost${isGone ? ": nothing answers" : ""}`;
    const isNew = byId("connected").textContent !== `${why}. Trying again …`;
    stop(`${why}. Trying again …`);
    if (!isGone || !isNew) return; // once, so that it can be closed
    complain(`${GONE}${deal === null ? ": the game goes on here" : ""}.`);
  });
  connection.addEventListener("ended", () => {
    stop("This page cannot play.");
    if (byId("problem").hidden) complain("This page cannot play. Reload it, or have it exported again.");
  });
  const openLinked = () => openLink((query) => connection.ask(query).answer, settings, open);
  window.addEventListener("hashchange", async () => deal === null && complain((await openLinked()) ?? ""));
  let isFirst = true;
  /** @type {string | null} the game that hides something, else empty */
  let hidden = null;
  connection.addEventListener("open", async () => {
    complain("");
    tellConnection("open", about.local ? "plays in this browser" : "connected");
    try {
      const { models } = await connection.ask({ action: "query_models" }).answer;
      const [model] = models;
      const wasFor = hidden;
      hidden = model.hides ? model.game : "";
      if (wasFor !== null && wasFor !== hidden) return location.reload(); // the server is another one now
      if (model.hides) {
        if (deal !== null) return; // that the game has ended stays to be read
        deal = new Deal(connection, model, async () => about.renews && renew(model.name));
        return deal.begin();
      }
      const isSame = settings.offer(models);
      play.game.know(models);
      if (isFirst) seatAsAsked(settings);
      if (isFirst) turnToPerson();
      const kept = isFirst ? last() : null;
      isFirst = false;
      if (isSame) await play.refresh();
      const problem = isSame ? null : await openLinked();
      if (problem === null) return;
      const started = kept !== null && plays(kept.game) ? goBack(kept) : start(Game.begin());
      complain(problem);
      await started;
    } catch (error) {
      if (!(error instanceof Lost)) throw error;
    }
  });
  await connection.open();
}

main().catch((error) => complain(`The page cannot start: ${messageOf(error)}`));
