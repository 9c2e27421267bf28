// How does the game stand, and what can be pressed? The line above the moves, the buttons below it, and typed moves.

import { byId, complain, fill, isForPage, make, mark, onClick, write } from "./dom.js";
import { named } from "./position.js";
import { seats, titleOf, toldMen } from "./seats.js";

const WAYS = { ArrowUp: "up", ArrowDown: "down", ArrowLeft: "left", ArrowRight: "right" };
const SWIPE = 24; // pixels
const STEPS = { ArrowLeft: "back", ArrowRight: "on", Home: "first", End: "last" };

export class Controls {
  /** `gameBefore` gives the game that Undo goes back to where there is nothing to take back. */
  constructor(play, settings, gameBefore, undo) {
    [this.play, this.settings, this.gameBefore] = [play, settings, gameBefore];
    this.deleted = null; // the move that a second press deletes
    this.offered = null; // the position whose moves are offered where one is typed
    onClick("first", () => play.goTo(play.game.root));
    onClick("back", () => play.goTo(play.game.current.parent ?? play.game.root));
    onClick("on", () => play.goTo(play.game.current.next ?? play.game.current));
    onClick("last", () => play.goTo(play.game.line().at(-1) ?? play.game.root));
    onClick("undo", undo);
    onClick("pause", () => play.pause(!play.isPaused));
    onClick("resign", () => play.end(play.game.current.shown?.player ?? 0, "by resignation"));
    onClick("promote", () => {
      play.game.promote(play.game.current);
      return play.refresh();
    });
    onClick("delete", () => {
      if (this.deleted !== play.game.current) {
        this.deleted = play.game.current;
        return write(byId("delete"), "Delete: press again");
      }
      play.game.remove(this.deleted);
      return play.refresh();
    });
    bindWays(play, () => this.canPlay);
    document.addEventListener("keydown", (event) => {
      if (!isForPage(event) || byId("board").contains(event.target) || !Object.hasOwn(STEPS, event.key)) return;
      event.preventDefault();
      byId(STEPS[event.key]).click();
    });
    byId("typed").addEventListener("input", () => complain(""));
    byId("typed_form").addEventListener("submit", (event) => {
      event.preventDefault();
      const [text, { shown }] = [byId("typed").value.trim(), play.game.current];
      if (byId("typed").readOnly || shown === null) return;
      const found = named(shown, text);
      if (found === null) return complain(`${text || "Nothing"} is not a legal move here.`);
      byId("typed").value = "";
      return play.play(found);
    });
  }

  /** Whether a person can play at the current position. */
  get canPlay() {
    const { game, isNetworks, connection } = this.play;
    return this.play.isOpen && game.current.shown?.player !== null && !isNetworks && connection.isOpen;
  }

  /** How the game stands, in words. */
  get status() {
    const { play, settings } = this;
    const { shown, children } = play.game.current;
    const result = play.result(play.game.current);
    if (result !== null) return result;
    const player = shown?.player ?? null;
    const isRoll = (shown?.rolls.length ?? 0) > 0;
    const who = player === null ? "" : settings.whoIs(player);
    const next = isRoll ? "A roll is due" : "The next position";
    const due = player === null ? next : who === "You" ? "Your move" : `${who} to move`;
    if (play.connection.isEnded) return "The search keeps stopping: reload the page.";
    if (!play.connection.isOpen) return `${due}: waiting for the connection …`;
    if (play.isRefused) return `${due}: the server is busy or stopping. Trying again …`;
    if (play.isThinking) return `${who} is thinking …`;
    const { players, throws } = settings.options;
    const isOthers = player === null ? isRoll && throws : players[player] !== "";
    return isOthers && children.length === 0 && play.isPaused ? `${due}: paused.` : `${due}.`;
  }

  /** Shows which steps there are from a position. */
  showSteps({ parent, next }) {
    byId("first").disabled = byId("back").disabled = parent === null;
    byId("last").disabled = byId("on").disabled = next === null;
  }

  /** Shows what can be done at the current position, which is known. */
  show(canPlay, status) {
    const { play, settings } = this;
    const { current } = play.game;
    const { players, throws } = settings.options;
    const { player, actions, rolls, captured, counts } = current.shown;
    const isOver = current.outcome !== null;
    byId("status").textContent = status;
    document.title = `${status} · ${titleOf(settings.model.game)} · azpy`;
    byId("board").dataset.ply = `${current.ply}`;
    byId("board").classList.toggle("swipes", hasWays(current));
    const isThrown = throws && current.children.length === 0 && !play.isPaused;
    const isWaiting = canPlay || (rolls.length > 0 && !isThrown && play.connection.isOpen);
    byId("board").dataset.state = isOver ? "over" : isWaiting ? "open" : "busy";
    for (const [side, row] of seats("side").entries()) {
      row.classList.toggle("turn", !isOver && player === side);
      write(byId(`counts_${side}`), counts?.[side] ?? "");
      const took = byId(`took_${side}`);
      const men = captured[side] ?? "";
      took.hidden = men === "";
      mark(took, "aria-label", `captured: ${men}`);
      write(took, toldMen(men));
    }
    byId("rematch").hidden = !isOver || play.names.length === 1;
    byId("share").hidden = !isOver;
    byId("typed").readOnly = !canPlay && (rolls.length === 0 || throws); // a disabled field would lose the focus
    const isGameBefore = !play.canUndo && this.gameBefore() !== undefined;
    byId("undo").textContent = isGameBefore ? "Last game" : "Undo";
    byId("undo").disabled = !play.canUndo && !isGameBefore;
    const isWatched = players.every((one) => one !== "");
    byId("pause").hidden = isOver || !(isWatched || (play.isPaused && players.some((one) => one !== "")));
    byId("pause").textContent = play.isPaused ? "Go on" : "Pause";
    byId("pause").setAttribute("aria-pressed", `${play.isPaused}`);
    byId("resign").hidden = !play.game.isZeroSum; // of more players nobody says what each gets
    byId("resign").disabled = !canPlay || current.children.length > 0;
    const line = play.game.line();
    const isMain = line.slice(0, current.ply + 1).every((one) => one === (one.parent?.children[0] ?? one));
    byId("promote").hidden = isMain;
    byId("delete").hidden = current.parent === null;
    byId("line_tools").hidden = isMain && line.every(({ children }) => children.length < 2);
    if (this.deleted !== current) this.deleted = null;
    if (this.deleted === null) write(byId("delete"), "Delete from here");
    if (this.offered === current) return;
    this.offered = current;
    fill(byId("names"), actions.map(({ name }) => make("option", { value: name })));
  }
}

/** Whether the only moves of a position are ways. During a roll, the moves before it count. */
function hasWays(position) {
  const { player = null, actions = [] } = position?.shown ?? {};
  if (player === null) return position !== null && position.children.length === 0 && hasWays(position.parent);
  return actions.length > 0 && actions.every(({ name }) => Object.values(WAYS).includes(name));
}

function bindWays(play, canPlay) {
  const [board, from] = [byId("board"), { x: 0, y: 0, isDown: false }];
  const go = (way) => {
    if (canPlay() && play.game.current.shown.actions.some(({ name }) => name === way)) play.play(way);
  };
  // Before the keys that go through the moves; a key held down waits until the next tile is there.
  document.addEventListener("keydown", (event) => {
    if (!isForPage(event) || !Object.hasOwn(WAYS, event.key) || !hasWays(play.game.current)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    go(WAYS[event.key]);
  }, true);
  board.addEventListener("pointerdown", ({ clientX, clientY, button }) => {
    Object.assign(from, { x: clientX, y: clientY, isDown: button === 0 && hasWays(play.game.current) });
  });
  board.addEventListener("pointerup", ({ clientX, clientY }) => {
    const [across, down] = [clientX - from.x, clientY - from.y];
    const isFar = Math.max(Math.abs(across), Math.abs(down)) > SWIPE;
    if (!from.isDown || !isFar) return;
    from.isDown = false;
    if (Math.abs(across) > Math.abs(down)) go(across < 0 ? "left" : "right");
    else go(down < 0 ? "up" : "down");
  });
}
