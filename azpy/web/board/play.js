// Who is to move, and what happens then? People touch the board, networks search, dice are thrown.

import { Asking, REPORTS } from "./asking.js";
import { Busy, Lost } from "./connection.js";
import { announce, complain, messageOf } from "./dom.js";
import { rolled } from "./position.js";
import { upper } from "./sides.js";

const PACE = 400; // milliseconds between two moves of networks that play each other

export class Play extends Asking {
  get names() {
    return this.game.names;
  }

  begin(game) {
    this.game = game;
    this.tag = `${Date.now()}`;
    return this.refresh();
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

  /** Plays where the position is known and the game goes on. */
  play(move) {
    if (!this.isOpen) return;
    complain("");
    const player = this.game.current.shown?.player ?? null;
    this.game.play(move);
    const who = player === null ? "Chance" : upper(this.names[player]);
    announce(`${who}: ${this.game.current.label}`);
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
    if (position === null) return;
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
      if (error instanceof Busy) this.later(serial, () => this.refresh());
      if (error instanceof Busy || error instanceof Lost) return this.onChange(false);
      // The record keeps what cannot be shown: another try, or another server, may show it.
      const isBefore = position.parent?.shown != null;
      if (isBefore) this.game.goTo(position.parent);
      const refreshed = isBefore ? this.refresh() : this.onChange(false);
      complain(`The position after ${position.move || "the start"} cannot be shown: ${messageOf(error)}`);
      return refreshed;
    }
    if (serial !== this.serial) return;
    this.isThinking = this.isNetworks;
    this.onChange(true);
    this.lookBack(serial, this.game);
    if (position.outcome !== null) return announce(this.result(position) ?? "");
    const { shown } = position;
    if (shown.player === null) {
      const isOpen = position.children.length === 0 && !this.isPaused && this.options().throws;
      if (isOpen && shown.rolls.length > 0) this.play(rolled(shown.rolls, Math.random()).name);
      return;
    }
    const answer = this.isThinking ? this.answer(serial, position) : null;
    await Promise.all([answer, this.advise(serial, position)]);
  }

  async answer(serial, position) {
    const { players, limits, hints } = this.options();
    const model = players[position.shown?.player ?? 0];
    const reports = hints ? { reportDuringSearchEvery: REPORTS } : {};
    const asked = { ...limits, ...reports, game: `${this.tag} ${model}`, priority: "play" };
    const began = performance.now();
    const onError = (error) => {
      this.isThinking = false;
      this.isRefused = error instanceof Busy;
      if (this.isRefused) this.later(serial, () => this.refresh());
      else if (!(error instanceof Lost)) this.isPaused = true;
    };
    const answer = await this.found(serial, this.search(position, model, asked), onError);
    if (answer === null) return;
    // People see what networks do: the dice, and each step of a turn.
    const isStep = position.mover === null || position.mover === position.shown?.player;
    if (isStep || !players.includes("")) {
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, PACE - (performance.now() - began))));
      if (serial !== this.serial) return;
    }
    return this.play(answer.move);
  }

  /** How the game ended, in words; null if it goes on. */
  result(position, names = this.names) {
    if (position.outcome === null) return null;
    if (position.ended === null) return `${position.shown?.result}.`;
    const { outcome } = position.ended;
    const who = outcome === 0 ? "Draw" : `${upper(names[outcome > 0 ? 0 : 1])} wins`;
    return `${who} ${position.ended.why}.`;
  }
}
