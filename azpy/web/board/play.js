// Who is to move, and what happens then? People touch the board, networks search, dice are thrown.

import { announce, complain, signed } from "./dom.js";
import { Lost } from "./connection.js";
import { rolled } from "./position.js";
import { bare, upper } from "./sides.js";
import { lastTurn } from "./turns.js";

const REPORTS = 0.3; // seconds between two reports of a search
const LONGEST_LINE = 20; // moves of a principal variation
const MOST_TURNS = 16; // of a query: a server may refuse more searches of one client
const PACE = 400; // milliseconds between two moves of networks that play each other

/**
 * @typedef {import("./game.js").Position} Position
 * @typedef {Object} Options what the person chose
 * @property {string} model that advises
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
    this.isThinking = false;
    this.names = ["player 0", "player 1"];
    this.serial = 0; // of the position or the options that count now
    this.tag = `${Date.now()}`; // of the searches whose tree is kept
    /** @type {import("./connection.js").Asked | null} */
    this.search = null;
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
    const player = this.game.current.shown?.player ?? null;
    this.game.play(move);
    const who = player === null ? "The dice" : upper(this.names[player]);
    announce(`${who}: ${this.game.current.label}`);
    return this.refresh();
  }

  /** @param {Position} position */
  goTo(position) {
    this.game.goTo(position);
    return this.refresh();
  }

  /** Goes back to where a person could choose last. */
  undo() {
    let position = this.game.current.parent;
    const isPersons = (/** @type {Position} */ one) => {
      const shown = one.shown;
      if (shown === null) return true;
      if (shown.player === null) return shown.rolls.length > 0 && !this.options().throws;
      return this.options().players[shown.player] === "";
    };
    const both = this.options().players.every((player) => player !== "");
    while (position !== null && position.parent !== null && !both && !isPersons(position)) position = position.parent;
    if (position === null) return;
    position.ended = null;
    this.game.current.ended = null;
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
    this.search?.stop();
    this.search = null;
    this.isThinking = false;
    const position = this.game.current;
    try {
      if (position.shown === null) {
        this.onChange(false);
        position.shown = await this.show(position.moves());
      }
    } catch (error) {
      if (serial !== this.serial) return;
      if (error instanceof Lost) return this.onChange(false);
      this.game.remove(position);
      complain(`This cannot be played: ${messageOf(error)}`);
      return position.parent === null ? this.onChange(true) : this.refresh();
    }
    if (serial !== this.serial) return;
    this.isThinking = this.isNetworks;
    this.onChange(true);
    this.lookBack(serial, this.game);
    if (position.outcome !== null) return announce(this.result(position) ?? "");
    const shown = position.shown;
    if (shown !== null && shown.player === null) {
      const isOpen = position.children.length === 0 && !this.isPaused && this.options().throws;
      if (isOpen && shown.rolls.length > 0) this.play(rolled(shown.rolls, Math.random()).name);
      return;
    }
    const { hints, model, hintSimulations } = this.options();
    const isKnown =
      position.found?.answer.isStored || (position.found?.model === model && position.found.visits >= hintSimulations);
    if (this.isThinking || (hints && !isKnown)) await this.think(serial, position);
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

  /** Searches at a position: a network's move, or a hint. @param {number} serial @param {Position} position */
  async think(serial, position) {
    const options = this.options();
    const plays = this.isThinking;
    const player = position.shown?.player ?? 0;
    const model = plays ? options.players[player] : options.model;
    const { simulations, seconds, hintSimulations } = options;
    const limits = plays ? { simulations, seconds } : { simulations: hintSimulations };
    const learn = (/** @type {any} */ answer) => {
      if (answer.rootInfo?.value === null || answer.rootInfo === undefined) return;
      const value = player === 0 ? answer.rootInfo.value : -answer.rootInfo.value;
      position.learn({ model, value, visits: answer.rootInfo.visits, answer });
      if (serial === this.serial) this.onChange(false);
    };
    const began = performance.now();
    this.search = this.connection.ask(
      {
        ...this.where(position.moves(), model),
        ...Object.fromEntries(Object.entries(limits).filter(([, limit]) => limit !== null)),
        game: `${this.tag} ${plays ? model : "hints"}`,
        priority: plays ? "play" : "analysis",
        analysisPVLen: LONGEST_LINE,
        includeLcb: false,
        ...(options.hints ? { reportDuringSearchEvery: REPORTS } : {}),
      },
      learn,
    );
    let answer;
    try {
      answer = await this.search.answer;
    } catch (error) {
      if (serial !== this.serial || error instanceof Lost) return;
      this.isThinking = false;
      complain(`The search failed: ${messageOf(error)}`);
      if (plays) this.isPaused = true;
      return this.onChange(false);
    }
    if (serial !== this.serial) return;
    if (!plays) {
      const [best] = answer.moveInfos;
      if (best) announce(`Best: ${best.pvShort[0]}, value ${signed(best.value)}`);
      return;
    }
    // People see what networks do: the dice, and each step of a turn.
    const isStep = position.mover === null || position.mover === player;
    if (isStep || options.players.every((one) => one !== "")) {
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, PACE - (performance.now() - began))));
      if (serial !== this.serial) return;
    }
    return this.play(answer.move);
  }

  /** Searches every position of the current line that was not searched yet. */
  async analyse() {
    const line = this.game.line();
    const open = line.filter((one) => one.found === null && one.outcome === null && one.shown?.player !== null);
    if (open.length === 0) return;
    const { model, hintSimulations } = this.options();
    const [where, refused] = [this.where(line[line.length - 1].moves(), model), new Map()];
    const learn = (/** @type {any} */ answer) => {
      const position = line[answer.turnNumber];
      const root = answer.rootInfo;
      if (answer.error) refused.set(answer.turnNumber, answer.error);
      if (position === undefined || root === undefined || root.value === null) return; // a roll, or the end
      position.learn({ model, value: root.player === 0 ? root.value : -root.value, visits: root.visits, answer });
      this.onChange(false);
    };
    for (let at = 0; at < open.length; at += MOST_TURNS) {
      if (this.game.line()[0] !== line[0]) return; // another game
      const turns = open.slice(at, at + MOST_TURNS).map((one) => one.ply);
      const query = {
        ...where,
        analyzeTurns: turns,
        simulations: hintSimulations,
        priority: "analysis",
        analysisPVLen: LONGEST_LINE,
      };
      try {
        await this.connection.ask(query, learn, turns.length).answer;
      } catch (error) {
        if (turns.length > 1 || error instanceof Lost) throw error;
        refused.set(turns[0], messageOf(error));
      }
    }
    // Before a roll of dice there is nothing to search.
    const [problem] = [...refused.values()].filter((said) => !said.includes("a roll is due"));
    if (problem !== undefined) throw new Error(problem);
  }

  /** How the game ended, in words; null if it goes on. @param {Position} position @returns {string | null} */
  result(position) {
    const outcome = position.outcome;
    if (outcome === null) return null;
    if (position.ended === null) return `${position.shown?.result}.`;
    return `${upper(bare(this.names[outcome > 0 ? 0 : 1]))} wins ${position.ended.why}.`;
  }
}

/** @param {unknown} error */
export function messageOf(error) {
  return error instanceof Error ? error.message : String(error);
}
