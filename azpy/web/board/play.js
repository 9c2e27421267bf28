// Who is to move, and what happens then? People touch the board, networks search, dice are thrown.

import { AGAIN, Busy, Lost } from "./connection.js";
import { announce, complain } from "./dom.js";
import { foundOf, RUN } from "./game.js";
import { placesOf } from "./places.js";
import { rolled } from "./position.js";
import { upper } from "./seats.js";
import { lastTurn } from "./turns.js";
import { told } from "./values.js";

const PACE = 400; // milliseconds between two moves of networks that play each other
const REPORTS = 0.3; // seconds between two reports of a search
const LONGEST_LINE = 20; // moves of a principal variation

/** The game on the board, and all that is asked of the server about it. */
export class Play {
  /** `options` gives what the person chose. `onChange` is called when there is something else to see, with whether the
   * position is another one. */
  constructor(connection, game, options, onChange) {
    [this.connection, this.game, this.options, this.onChange] = [connection, game, options, onChange];
    this.isPaused = false;
    this.isThinking = false; // whether a network is about to move
    this.isRefused = false; // whether the server takes no query now
    this.serial = 0; // of the position or the options that count now
    this.searches = [];
  }

  begin(game) {
    this.game = game;
    this.tag = `${Date.now()}`; // of the searches whose tree is kept
    return this.refresh();
  }

  get names() {
    return this.game.names;
  }

  /** Whether the position is known and the game goes on. */
  get isOpen() {
    return this.game.current.shown !== null && this.game.current.outcome === null;
  }

  /** Whether a network is to move at the current position by itself. */
  get isNetworks() {
    const { shown, children } = this.game.current;
    const isTurn = this.isOpen && shown.player !== null && this.options().players[shown.player] !== "";
    return isTurn && children.length === 0 && !this.isPaused;
  }

  /** Plays where the position is known and the game goes on. */
  play(move) {
    if (!this.isOpen) return;
    complain("");
    const { player } = this.game.current.shown;
    this.game.play(move);
    announce(`${player === null ? "Chance" : upper(this.names[player])}: ${this.game.current.label}`);
    return this.refresh();
  }

  goTo(position) {
    complain("");
    this.game.goTo(position);
    return this.refresh();
  }

  /** The last position before the current one where a person could choose. */
  get before() {
    const { players, throws } = this.options();
    const isWatched = !players.includes("");
    const isThrown = ({ shown }) => shown?.player === null && throws;
    const isNetworks = ({ shown }) => !isWatched && Boolean(players[shown?.player ?? -1]);
    let position = this.game.current.parent;
    while (position !== null && (isThrown(position) || isNetworks(position))) position = position.parent;
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
    position.ended = null;
    return this.goTo(position);
  }

  /** Ends a game of two players at the current position. */
  end(loser, why) {
    if (!this.isOpen) return;
    this.game.current.ended = { outcome: loser === 0 ? -1 : 1, why };
    return this.refresh();
  }

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
      if (this.isRefused) this.later(serial, () => this.refresh());
      if (this.isRefused || error instanceof Lost) return this.onChange(false);
      // The record keeps what cannot be shown: another try, or another server, may show it.
      const isBefore = position.parent?.shown != null;
      if (isBefore) this.game.goTo(position.parent);
      const refreshed = isBefore ? this.refresh() : this.onChange(false);
      complain(`The position after ${position.move || "the start"} cannot be shown: ${error.message}`);
      return refreshed;
    }
    if (serial !== this.serial) return;
    this.isThinking = this.isNetworks;
    this.onChange(true);
    this.lookBack(serial);
    if (position.outcome !== null) return announce(this.result(position));
    const { player, rolls } = position.shown;
    if (player === null) {
      const isThrown = position.children.length === 0 && !this.isPaused && this.options().throws;
      if (isThrown && rolls.length > 0) this.play(rolled(rolls, Math.random()).name);
      return;
    }
    const answer = this.isThinking ? this.answer(serial, position) : null;
    await Promise.all([answer, this.advise(serial, position)]);
  }

  /** What a query says of a position. */
  where(moves, model = this.options().model, game = this.game) {
    return { model, moves, includeShortNames: true, ...(game.start === null ? {} : { position: game.start }) };
  }

  /** Asks the server for a position. */
  async show(moves, game = this.game, model = undefined) {
    const notes = game.at(moves)?.notes ?? {};
    const shown = await this.connection.ask({ action: "show", ...this.where(moves, model, game), notes }).answer;
    // Of two players who share a zero sum the server says one number.
    const { outcome = null, outcomes = outcome === null ? null : [outcome, -outcome] } = shown;
    return { ...shown, outcomes, places: placesOf(shown, game) };
  }

  /** Has the moves of the last turn known, with their places on the board, where the game came from a file: the
   * position before a move says them. */
  async lookBack(serial) {
    try {
      for (const { parent: one } of lastTurn(this.game.current, this.names.length)) {
        if (one.shown !== null) continue;
        one.shown = await this.show(one.moves());
        if (serial !== this.serial) return;
        this.onChange(false);
      }
    } catch {
      // The mark of a move is worth no alarm.
    }
  }

  /** Has a player search, and the position learn what it finds. `asked` has the limits, and more of the query. */
  search(position, model, asked) {
    const usual = { priority: "analysis", analysisPVLen: LONGEST_LINE, includeLcb: false };
    return this.connection.ask({ ...this.where(position.moves(), model), ...usual, ...asked }, (answer) => {
      const { value, network } = answer.rootInfo;
      if (value === null) return; // the game is over there
      this.game.know([{ name: model, network }]);
      position.learn(model, foundOf(answer));
      this.onChange(false);
    });
  }

  /** Waits for a search, which ends when another position counts: then it gives null. */
  async found(serial, search, onError) {
    this.searches.push(search);
    try {
      const answer = await search.answer;
      return serial === this.serial ? answer : null;
    } catch (error) {
      if (serial !== this.serial) return null;
      if (!(error instanceof Busy || error instanceof Lost)) complain(`The search failed: ${error.message}`);
      onError(error);
      this.onChange(false);
      return null;
    }
  }

  /** Asks again in a while, unless another position counts then: the server has too much to do, or it ends. */
  later(serial, ask) {
    setTimeout(() => serial === this.serial && ask(), AGAIN);
  }

  /** Searches for a hint where one is wanted and not known yet. */
  async advise(serial, position) {
    const { hints, adviser, hintSimulations: simulations, players } = this.options();
    const isMovers = this.isThinking && adviser === players[position.shown.player]; // its search is shown as it goes on
    const isKnown = (position.finds.get(adviser)?.visits ?? 0) >= simulations;
    if (!hints || isMovers || isKnown || adviser === RUN) return;
    const asked = { simulations, game: `${this.tag} hints`, reportDuringSearchEvery: REPORTS };
    const answer = await this.found(serial, this.search(position, adviser, asked), (error) => {
      if (error instanceof Busy) this.later(serial, () => this.advise(serial, position));
    });
    const [best] = answer?.moveInfos ?? [];
    if (best) announce(`Best: ${best.pvShort[0]}, value ${told(best.value)}`);
  }

  /** Has a network move. */
  async answer(serial, position) {
    const { players, limits, hints } = this.options();
    const model = players[position.shown.player];
    const reports = hints ? { reportDuringSearchEvery: REPORTS } : {};
    const asked = { ...limits, ...reports, game: `${this.tag} ${model}`, priority: "play" };
    const began = performance.now();
    const answer = await this.found(serial, this.search(position, model, asked), (error) => {
      this.isThinking = false;
      this.isRefused = error instanceof Busy;
      if (this.isRefused) this.later(serial, () => this.refresh());
      else if (!(error instanceof Lost)) this.isPaused = true;
    });
    if (answer === null) return;
    // People see what networks do: the dice, and each step of a turn.
    const isStep = position.mover === null || position.mover === position.shown.player;
    if (isStep || !players.includes("")) {
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, PACE - (performance.now() - began))));
      if (serial !== this.serial) return;
    }
    return this.play(answer.move);
  }

  /** How the game ended, in words; null if it goes on. */
  result(position, names = this.names) {
    if (position.outcome === null) return null;
    if (position.ended === null) return `${position.shown.result}.`;
    const { outcome, why } = position.ended;
    const who = outcome === 0 ? "Draw" : `${upper(names[outcome > 0 ? 0 : 1])} wins`;
    return `${who} ${why}.`;
  }
}
