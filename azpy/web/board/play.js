// Who is to move, and what happens then? People touch the board, networks search, dice are thrown.

import { announce, complain, messageOf } from "./dom.js";
import { Busy, Lost } from "./connection.js";
import { rolled } from "./position.js";
import { RUN } from "./game.js";
import { upper } from "./sides.js";
import { lastTurn } from "./turns.js";
import { told } from "./values.js";

const REPORTS = 0.3; // seconds between two reports of a search
const LONGEST_LINE = 20; // moves of a principal variation
const AGAIN = 1000; // milliseconds until a server that refused is asked again
const PACE = 400; // milliseconds between two moves of networks that play each other

/**
 * @typedef {import("./game.js").Position} Position
 * @typedef {Object} Options what the person chose
 * @property {string} model that plays the game, and shows positions
 * @property {string} adviser whose values and moves are hints
 * @property {[string, string]} players the model of each side; empty for a person
 * @property {number | null} simulations of a network's move
 * @property {number | null} seconds of a network's move
 * @property {number} hintSimulations
 * @property {boolean} hints
 * @property {boolean} throws whether the page throws the dice
 */

/** Runs the game. `onChange` is called when there is something else to see. */
export class Play {
  /**
   * @param {import("./connection.js").Connection} connection
   * @param {import("./game.js").Game} game
   * @param {() => Options} options
   * @param {(isNew: boolean) => void} onChange gets whether the position is another one
   */
  constructor(connection, game, options, onChange) {
    this.connection = connection;
    this.options = options;
    this.onChange = onChange;
    this.game = game;
    this.isPaused = false;
    this.isThinking = false; // whether a network is about to move
    this.isRefused = false; // whether the server takes no query now
    this.names = ["player 0", "player 1"];
    this.serial = 0; // of the position or the options that count now
    this.tag = `${Date.now()}`; // of the searches whose tree is kept
    /** @type {import("./connection.js").Asked[]} */
    this.searches = [];
  }

  /** @param {import("./game.js").Game} game */
  begin(game) {
    this.game = game;
    this.tag = `${Date.now()}`;
    return this.refresh();
  }

  /** What a query says of a position. @param {string[]} moves @param {string} model */
  where(moves, model, game = this.game) {
    return { model, moves, includeShortNames: true, ...(game.start === null ? {} : { position: game.start }) };
  }

  /** Whether the position is known and the game goes on. */
  get isOpen() {
    return this.game.current.shown !== null && this.game.current.outcome === null;
  }

  /** Whether a network is to move at the current position by itself. */
  get isNetworks() {
    const { shown, children, outcome } = this.game.current;
    const isTurn = shown !== null && shown.player !== null && this.options().players[shown.player] !== "";
    return isTurn && outcome === null && children.length === 0 && !this.isPaused;
  }

  /** Plays where the position is known and the game goes on. @param {string} move */
  play(move) {
    if (!this.isOpen) return;
    complain("");
    const player = this.game.current.shown?.player ?? null;
    this.game.play(move);
    const who = player === null ? "The dice" : upper(this.names[player]);
    announce(`${who}: ${this.game.current.label}`);
    return this.refresh();
  }

  /** @param {Position} position */
  goTo(position) {
    complain("");
    this.game.goTo(position);
    return this.refresh();
  }

  /** The last position before the current one where a person could choose. @returns {Position | null} */
  get before() {
    const { players, throws } = this.options();
    const isWatched = players.every((player) => player !== "");
    const isChosen = ({ shown }) => {
      if (shown === null) return true;
      return shown.player === null ? !throws : isWatched || players[shown.player] === "";
    };
    let position = this.game.current.parent;
    while (position !== null && !isChosen(position)) position = position.parent;
    return position;
  }

  /** Whether there is something to take back. */
  get canUndo() {
    return this.game.current.ended !== null || this.before !== null;
  }

  /** Takes back how the players ended the game, or else goes back to where a person could choose last. */
  undo() {
    const { current } = this.game;
    const position = current.ended === null ? this.before : current;
    if (position === null) return;
    position.ended = null;
    return this.goTo(position);
  }

  redo() {
    const next = this.game.current.next;
    if (next !== null) return this.goTo(next);
  }

  /** Ends the game at the current position. @param {number} loser @param {string} why */
  end(loser, why) {
    if (!this.isOpen) return;
    this.game.current.ended = { outcome: loser === 0 ? -1 : 1, why };
    return this.refresh();
  }

  /** @param {boolean} isPaused */
  pause(isPaused) {
    this.isPaused = isPaused;
    return this.refresh();
  }

  /** Shows the current position, and does what is to be done there. */
  async refresh() {
    const serial = ++this.serial;
    for (const search of this.searches.splice(0)) search.stop();
    this.isThinking = this.isRefused = false;
    const position = this.game.current;
    try {
      if (position.shown === null) {
        this.onChange(false);
        position.shown = await this.show(position.moves());
      }
    } catch (error) {
      if (serial !== this.serial) return;
      this.isRefused = error instanceof Busy;
      if (error instanceof Busy) this.later(serial, () => this.refresh());
      if (error instanceof Busy || error instanceof Lost) return this.onChange(false);
      this.game.remove(position);
      const refreshed = position.parent === null ? this.onChange(true) : this.refresh();
      complain(`This cannot be played: ${messageOf(error)}`);
      return refreshed;
    }
    if (serial !== this.serial) return;
    this.isThinking = this.isNetworks;
    this.onChange(true);
    this.lookBack(serial, this.game);
    if (position.outcome !== null) return announce(this.result(position) ?? "");
    const { shown } = position;
    const { hints, adviser, hintSimulations, players, throws } = this.options();
    if (shown.player === null) {
      const isOpen = position.children.length === 0 && !this.isPaused && throws;
      if (isOpen && shown.rolls.length > 0) this.play(rolled(shown.rolls, Math.random()).name);
      return;
    }
    const isKnown = (position.finds.get(adviser)?.visits ?? 0) >= hintSimulations;
    const isAdvised = !hints || isKnown || adviser === RUN || (this.isThinking && players[shown.player] === adviser);
    await Promise.all([this.isThinking && this.answer(serial, position), !isAdvised && this.advise(serial, position)]);
  }

  /**
   * Asks again in a while, unless another position counts then: the server has too much to do, or it ends.
   * @param {number} serial
   * @param {() => unknown} ask
   */
  later(serial, ask) {
    setTimeout(() => serial === this.serial && ask(), AGAIN);
  }

  /**
   * Has the moves of the last turn known, with their places on the board, where the game came from a file: the position
   * before a move says them.
   * @param {number} serial
   * @param {import("./game.js").Game} game
   */
  async lookBack(serial, game) {
    try {
      for (const { parent: one } of lastTurn(game.current)) {
        if (one === null || one.shown !== null) continue;
        one.shown = await this.show(one.moves(), game);
        if (serial !== this.serial) return;
        this.onChange(false);
      }
    } catch {
      // The mark of a move is worth no alarm.
    }
  }

  /**
   * Asks the server for a position.
   * @param {string[]} moves
   * @param {import("./game.js").Game} [game]
   * @returns {Promise<import("./position.js").Shown>}
   */
  show(moves, game = this.game) {
    const notes = game.at(moves)?.notes ?? {};
    return this.connection.ask({ action: "show", ...this.where(moves, this.options().model, game), notes }).answer;
  }

  /**
   * Has a player search, and the position learn what the search finds.
   * @param {Position} position
   * @param {string} model
   * @param {Record<string, unknown>} asked the limits, and what else the query says
   * @returns {import("./connection.js").Asked}
   */
  search(position, model, asked) {
    const learn = (/** @type {any} */ answer) => {
      const { player, value, visits } = answer.rootInfo;
      if (value === null) return; // the game is over there
      position.learn(model, { value: player === 0 ? value : -value, visits, answer });
      this.onChange(false);
    };
    const usual = { priority: "analysis", analysisPVLen: LONGEST_LINE, includeLcb: false };
    return this.connection.ask({ ...this.where(position.moves(), model), ...usual, ...asked }, learn);
  }

  /**
   * Waits for a search, which ends when another position counts.
   * @param {number} serial
   * @param {import("./connection.js").Asked} search
   * @param {boolean} plays whether a network's move waits for it
   * @returns {Promise<any>} the answer; null if it does not count
   */
  async found(serial, search, plays) {
    this.searches.push(search);
    try {
      const answer = await search.answer;
      return serial === this.serial ? answer : null;
    } catch (error) {
      if (serial !== this.serial) return null;
      if (plays) this.isThinking = false;
      const isPassing = error instanceof Busy || error instanceof Lost;
      if (plays && !isPassing) this.isPaused = true;
      if (!isPassing) complain(`The search failed: ${messageOf(error)}`);
      if (error instanceof Busy) {
        this.isRefused = plays;
        this.later(serial, () => (plays ? this.refresh() : this.advise(serial, this.game.current)));
      }
      this.onChange(false);
      return null;
    }
  }

  /** Searches for a network's move, and plays it. @param {number} serial @param {Position} position */
  async answer(serial, position) {
    const { players, simulations, seconds, hints } = this.options();
    const model = players[position.shown?.player ?? 0];
    const limits = { ...(simulations === null ? {} : { simulations }), ...(seconds === null ? {} : { seconds }) };
    const reports = hints ? { reportDuringSearchEvery: REPORTS } : {};
    const asked = { ...limits, ...reports, game: `${this.tag} ${model}`, priority: "play" };
    const began = performance.now();
    const answer = await this.found(serial, this.search(position, model, asked), true);
    if (answer === null) return;
    // People see what networks do: the dice, and each step of a turn.
    const isStep = position.mover === null || position.mover === position.shown?.player;
    if (isStep || players.every((one) => one !== "")) {
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, PACE - (performance.now() - began))));
      if (serial !== this.serial) return;
    }
    return this.play(answer.move);
  }

  /** Searches for a hint. @param {number} serial @param {Position} position */
  async advise(serial, position) {
    const { adviser, hintSimulations: simulations } = this.options();
    const asked = { simulations, game: `${this.tag} hints`, reportDuringSearchEvery: REPORTS };
    const answer = await this.found(serial, this.search(position, adviser, asked), false);
    const [best] = answer?.moveInfos ?? [];
    if (best) announce(`Best: ${best.pvShort[0]}, value ${told(best.value)}`);
  }

  /** How the game ended, in words; null if it goes on. @param {Position} position @returns {string | null} */
  result(position) {
    const outcome = position.outcome;
    if (outcome === null) return null;
    if (position.ended === null) return `${position.shown?.result}.`;
    return `${upper(this.names[outcome > 0 ? 0 : 1])} wins ${position.ended.why}.`;
  }
}
