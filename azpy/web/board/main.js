// How do the parts make the page? Here they meet; each part knows only its own.

import { bindArchive } from "./archive.js";
import { Candidates } from "./candidates.js";
import { Clock } from "./clock.js";
import { Connection, Lost } from "./connection.js";
import { bindFiles } from "./dialogs.js";
import { announce, byId, complain, fill, keep, make, mark, signed } from "./dom.js";
import { Game } from "./game.js";
import { showBar, showGraph } from "./graph.js";
import { enter } from "./login.js";
import { showMoves } from "./moves.js";
import { bindComment, showComment, showHeaders } from "./notes.js";
import { Overlay } from "./overlay.js";
import { Picture } from "./picture.js";
import { messageOf, Play } from "./play.js";
import { named, startingWith } from "./position.js";
import { keepForSession, sessionOf, Settings, store, stored } from "./settings.js";
import { bare, upper } from "./sides.js";
import { showTree } from "./tree.js";
import { turned } from "./turning.js";
import { lastTurn } from "./turns.js";

const STORE = "azpy board game";
const TURNED = "azpy board turned";
let isTurned = sessionOf(TURNED) === true; // whether the board is seen from the other side
/** What the server says of itself. @type {{version: string, run: string | null, renews: boolean, token: boolean}} */
let about = { version: "", run: null, renews: false, token: false };
const connection = new Connection(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws`, async () => {
  about = await enter();
  byId("open_archive").hidden = about.run === null;
  byId("logout").hidden = !about.token;
});
const settings = new Settings({
  onModel: () => start(new Game()),
  onPlay: () => play.refresh(),
  onClock: () => {
    clock.reset(settings.clock.minutes);
    render(false);
  },
});
const play = new Play(connection, new Game(), () => settings.options, render);
const overlay = new Overlay();
const picture = new Picture({
  onPlay: (actions) => (actions.length === 1 ? play.play(actions[0].name) : choose(actions)),
  onChoose: drawOver,
  onTurn: turn,
});
const candidates = new Candidates({ onLook: drawOver, picture: pictureAfter });
const clock = new Clock((late) => play.end(late, "on time"));

/** The picture after further moves. @param {string[]} moves */
async function pictureAfter(moves) {
  return seen(await play.show([...play.game.current.moves(), ...moves])).svg;
}

/** A position from the side that the board is seen from. @param {import("./position.js").Shown} shown */
function seen(shown) {
  return isTurned && settings.model.canRotate ? turned(shown) : shown;
}

/** Shows the board from the other side. */
function turn() {
  const position = play.game.current;
  if (!settings.model.canRotate || position.shown === null) return;
  isTurned = !isTurned;
  keepForSession(TURNED, isTurned);
  picture.turn();
  showPicture(position);
  candidates.lookAgain();
  announce(isTurned ? "The board is turned." : "The board is turned back.");
}

/** @param {import("./game.js").Position} position */
function showPicture(position) {
  if (position.shown !== null) picture.show(seen(position.shown), isOpen(position), `The board. ${statusOf(position)}`);
  byId("turn").setAttribute("aria-pressed", `${isTurned}`);
  byId("turn").hidden = !settings.model.canRotate;
}

/** Begins with a game, from its first position or where the record stands. @param {Game} game */
function start(game) {
  complain("");
  play.names = settings.names;
  game.names = [bare(play.names[0]), bare(play.names[1])];
  game.isPaired = settings.model.format === "pgn";
  clock.reset(settings.clock.minutes);
  return play.begin(game);
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
    for (const button of byId("choices").children) mark(button, "aria-disabled", "true");
    picture.close();
    clock.run(null);
    return;
  }
  const { hints } = settings.options;
  const answer = hints ? (position.found?.answer ?? null) : null;
  const label = (/** @type {string} */ name) => shown.actions.find((one) => one.name === name)?.short ?? name;
  const status = statusOf(position);
  const canPlay = isOpen(position);
  if (isNew) {
    showPicture(position);
    showChoices(position, canPlay);
    fill(byId("names"), canPlay ? shown.actions.map((action) => make("option", { value: action.name })) : []);
    const { name: model, game: played } = settings.model;
    const { players } = settings.options;
    const { ended } = position;
    const kept = { model, game: played, players, record: game.toNodes(), at: position.moves(), ended };
    store(STORE, { ...kept, isPaused: play.isPaused });
  }
  byId("status").textContent = status;
  byId("board").dataset.ply = `${position.ply}`;
  const isChoice = canPlay || (shown.rolls.length > 0 && !canThrow(position));
  byId("board").dataset.state = position.outcome !== null ? "over" : isChoice ? "open" : "busy";
  const turn = position.outcome === null ? shown.player : null;
  for (const player of [0, 1]) byId(`side_${player}`).classList.toggle("turn", turn === player);
  byId("typed").readOnly = !canPlay && shown.rolls.length === 0; // a disabled field would lose the focus
  byId("first").disabled = byId("back").disabled = byId("undo").disabled = position.parent === null;
  byId("last").disabled = byId("on").disabled = byId("redo").disabled = position.next === null;
  const hasNetwork = settings.options.players.some((player) => player !== "");
  byId("pause").hidden = !hasNetwork;
  byId("pause").textContent = play.isPaused ? "Go on" : "Pause";
  byId("pause").setAttribute("aria-pressed", `${play.isPaused}`);
  byId("resign").disabled = !canPlay || position.children.length > 0;
  for (const element of document.querySelectorAll(".dice")) element.toggleAttribute("hidden", !hasDice(game));

  byId("hinted").hidden = !hints;
  byId("no_candidates").textContent = position.outcome === null ? "The search has not begun." : "The game is over.";
  byId("no_hints").hidden = hints;
  byId("bar").hidden = !hints;
  showComment(position);
  showHeaders(game.about);
  showMoves(game, hints, isNew, (chosen) => play.goTo(chosen));
  candidates.show(answer?.moveInfos ?? [], label, isNew);
  if (hints) {
    showBar(position.value, play.names);
    byId("root").textContent = answer === null ? "" : rootText(answer);
    showTree(answer?.moveInfos ?? [], label);
    showGraph(game.line(), position, play.names, (chosen) => play.goTo(chosen));
  }
  const isTimed = position.outcome === null && position.children.length === 0 && !play.isPaused && connection.isOpen;
  for (const player of [0, 1]) byId(`clock_${player}`).hidden = !settings.clock.isOn;
  clock.run(settings.clock.isOn && isTimed ? shown.player : null);
}

/** Whether a person can play here. @param {import("./game.js").Position} position */
function isOpen(position) {
  return position.outcome === null && position.shown?.player !== null && !play.isNetworks && connection.isOpen;
}

/** Whether the page throws the dice here. @param {import("./game.js").Position} position */
function canThrow(position) {
  return settings.options.throws && position.children.length === 0 && !play.isPaused;
}

/** @param {Game} game */
function hasDice(game) {
  return game.line().some((position) => (position.shown?.rolls.length ?? 0) > 0);
}

/** @param {import("./game.js").Position} position */
function statusOf(position) {
  const result = play.result(position);
  if (result !== null) return result;
  const player = position.shown?.player ?? null;
  if (player === null) return "A roll is due.";
  const who = `${upper(play.names[player])} to move`;
  if (play.isThinking) return `${who}: the network searches …`;
  const waits = settings.options.players[player] !== "" && position.children.length === 0 && play.isPaused;
  return waits ? `${who}: paused.` : `${who}.`;
}

/** @param {any} answer */
function rootText({ rootInfo, isDuringSearch, isStored }) {
  const reused = rootInfo.reused > 0 ? `, ${rootInfo.reused} of them from before` : "";
  const network = rootInfo.network ? `, network ${rootInfo.network.slice(0, 8)}` : "";
  const value = `value ${signed(rootInfo.value)} for the player to move`;
  const when = isStored ? "When the run played" : isDuringSearch ? "Searching" : "Searched";
  return `${when}: ${rootInfo.visits} visits${reused}, ${value}${network}.`;
}

/**
 * What has no place on the picture: passes, rolls. A button that cannot be pressed now stays, and so does its focus.
 * @param {import("./game.js").Position} position
 * @param {boolean} canPlay
 */
function showChoices(position, canPlay) {
  const shown = position.shown;
  const actions = position.outcome === null ? (shown?.actions ?? []) : [];
  const untouched = actions.filter((action) => action.touches.length === 0);
  const rolls = canThrow(position) || position.outcome !== null ? [] : (shown?.rolls ?? []);
  keep(
    byId("choices"),
    [
      ...untouched.map(({ name, short }) => ({ name, text: short, isOpen: canPlay })),
      ...rolls.map(({ name, probability }) => {
        return { name, text: `${name} (${(100 * probability).toFixed(1)}%)`, isOpen: true };
      }),
    ],
    ({ name, text }) => `${name} ${text}`,
    ({ name, text }) => {
      const button = make("button", { type: "button" }, text);
      button.addEventListener("click", () => {
        if (button.getAttribute("aria-disabled") === null) play.play(name);
      });
      return button;
    },
    (button, { isOpen }) => mark(button, "aria-disabled", isOpen ? null : "true"),
  );
}

/** The touches of each move of the last turn. @param {import("./game.js").Position} position */
function touchesOf(position) {
  return [...lastTurn(position)].reverse().map(({ parent, move }) => {
    const shown = parent?.shown ?? null;
    return shown === null ? [] : (seen(shown).actions.find((action) => action.name === move)?.touches ?? []);
  });
}

/** Draws over the picture. */
function drawOver() {
  const position = play.game.current;
  if (position.shown === null) return;
  const shown = seen(position.shown);
  const last = touchesOf(position);
  const looked = candidates.looked !== null || candidates.kept !== null ? candidates.shown : null;
  const { hints } = settings.options;
  // Once a piece is chosen, its own candidates are left.
  const actions = picture.path.length > 0 ? startingWith(shown.actions, picture.path) : shown.actions;
  const moves = hints && position.outcome === null ? candidates.moves : [];
  overlay.show(picture.box, { last, marks: shown.marks, actions, moves, pv: hints ? (looked?.pv ?? null) : null });
}

/** Asks which of several actions with the same touches is meant. @param {import("./position.js").Action[]} actions */
function choose(actions) {
  const dialog = byId("chooser");
  const buttons = actions.map((action) => {
    const { name, short } = action;
    const button = make("button", { type: "button" }, short === name ? name : `${short} (${name})`);
    button.addEventListener("click", () => {
      dialog.close();
      play.play(action.name);
    });
    return button;
  });
  fill(byId("chooser_names"), buttons);
  dialog.showModal();
}

/** Plays what was typed. @param {string} text */
async function typed(text) {
  if (byId("typed").readOnly) return;
  const shown = play.game.current.shown;
  const found = shown === null ? null : named(shown, text.trim());
  if (found === null || found.length < text.trim().length) {
    return complain(`${text.trim() || "Nothing"} is no legal move here.`);
  }
  complain("");
  byId("typed").value = "";
  await play.play(found.name);
}

function bind() {
  const click = (/** @type {string} */ id, /** @type {() => unknown} */ act) => byId(id).addEventListener("click", act);
  click("problem_close", () => complain(""));
  click("first", () => play.goTo(play.game.root));
  click("back", () => play.goTo(play.game.current.parent ?? play.game.root));
  click("on", () => play.redo());
  click("last", () => play.goTo(play.game.line().at(-1) ?? play.game.root));
  click("undo", () => play.undo());
  click("redo", () => play.redo());
  click("turn", turn);
  click("pause", () => play.pause(!play.isPaused));
  click("resign", () => play.end(play.game.current.shown?.player ?? 0, "by resignation"));
  click("logout", async () => {
    await fetch("/logout", { method: "POST" });
    location.reload();
  });
  click("chooser_cancel", () => byId("chooser").close());
  click("new", async () => {
    play.isPaused = false;
    if (about.renews) await renew();
    start(new Game());
  });
  click("analyse", async () => {
    try {
      await play.analyse();
      announce("Every move is analyzed.");
    } catch (error) {
      complain(`The analysis failed: ${messageOf(error)}`);
    }
  });
  byId("typed_form").addEventListener("submit", (/** @type {Event} */ event) => {
    event.preventDefault();
    typed(byId("typed").value);
  });
  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || document.querySelector("dialog[open]") !== null) return;
    if (event.target instanceof Element && event.target.closest("input, select, textarea, #board") !== null) return;
    const button = { ArrowLeft: "back", ArrowRight: "on", Home: "first", End: "last" }[event.key];
    if (button === undefined) return;
    event.preventDefault();
    byId(button).click();
  });
  new ResizeObserver(drawOver).observe(byId("board"));
  window.addEventListener("resize", () => render(false));
}

/** Has the server load the newest model of a run, where a run is played that may still train. */
async function renew() {
  try {
    const answer = await connection.ask({ action: "renew", model: settings.model.name }).answer;
    if (answer.changed) announce("A newer model was loaded.");
    tellAbout(answer.internalName);
  } catch (error) {
    complain(`The newest model cannot be loaded: ${messageOf(error)}`);
  }
}

/** @param {string} player the name of the model */
function tellAbout(player) {
  byId("about").textContent = about.run === null ? "" : player;
}

/** The game that this browser kept, if the server still has its player; else a new one. */
function kept() {
  const found = stored(STORE);
  try {
    if (!settings.take(found.model, found.game, found.players)) return new Game();
    const game = Game.fromNodes(found.record);
    let here = game.root;
    for (const move of found.at) here = here.children.find((child) => child.move === move) ?? here;
    game.goTo(here);
    if (Number.isFinite(found.ended?.outcome)) here.ended = { outcome: found.ended.outcome, why: `${found.ended.why}` };
    play.isPaused = found.isPaused === true;
    return game;
  } catch {
    return new Game(); // nothing was kept, or something else
  }
}

async function main() {
  bind();
  const open = (/** @type {Game} */ game) => {
    play.isPaused = true;
    return start(game);
  };
  const svg = () => (play.game.current.shown === null ? "" : seen(play.game.current.shown).svg);
  bindFiles({ play, settings, start: open, picture: svg });
  bindComment((text) => {
    play.game.current.comment = text;
    render(true);
  });
  bindArchive({ start: open });
  connection.addEventListener("problem", (event) => complain(/** @type {CustomEvent} */ (event).detail));
  connection.addEventListener("lost", () => {
    byId("connected").textContent = "The connection is lost. Trying again …";
    byId("connected").classList.add("lost");
    render(true);
  });
  let isFirst = true;
  connection.addEventListener("open", async () => {
    byId("connected").textContent = "connected";
    byId("connected").classList.remove("lost");
    try {
      const { models } = await connection.ask({ action: "query_models" }).answer;
      const isSame = settings.offer(models);
      tellAbout(models[0].internalName);
      if (isFirst) await start(kept());
      else await (isSame ? play.refresh() : start(new Game()));
      isFirst = false;
    } catch (error) {
      if (!(error instanceof Lost)) throw error;
    }
  });
  await connection.open();
}

main().catch((error) => complain(`The page cannot start: ${messageOf(error)}`));
