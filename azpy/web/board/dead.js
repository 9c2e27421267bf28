// Which stones are dead? After two passes in Go the players may agree on it, and the server counts again.

import { byId, complain, onClick } from "./dom.js";

export class Agreement {
  constructor(play, board) {
    [this.play, this.board] = [play, board];
    this.chains = []; // the places of each dead chain
    this.counted = null; // how the server counts now; null unless stones are being marked
    this.isAsking = false; // whether the server counts just now
    onClick("dead", () => (this.counted === null ? this.mark(null) : this.agree()));
  }

  /** Whether the rules ended the game at the current position by two passes. */
  get isPossible() {
    const { move, parent, ended, outcome } = this.play.game.current;
    const isGo = this.board.settings.model.format === "sgf";
    return isGo && outcome !== null && ended === null && move === "pass" && parent?.move === "pass";
  }

  /** What a person can do now, in words. */
  get said() {
    return this.counted === null ? null : `Touch the dead stones. With these ${this.counted.result}.`;
  }

  /** Begins anew: another position is shown. */
  reset() {
    [this.chains, this.counted] = [[], null];
    byId("dead").hidden = !this.isPossible;
    byId("dead").textContent = "Dead stones …";
  }

  /** Says that the chain of a stone is dead, or that it is not; null marks none. */
  async mark(place) {
    // The next touch goes on from what this one gives.
    if (this.isAsking) return;
    this.isAsking = true;
    const others = this.chains.filter((chain) => place === null || !chain.includes(place));
    const known = others.flat();
    const isNew = place !== null && others.length === this.chains.length;
    const { play, board } = this;
    const { current } = play.game;
    const dead = isNew ? [...known, place] : known;
    try {
      const where = play.where(current.moves(), play.options().model);
      const counted = await play.connection.ask({ action: "show", ...where, dead }).answer;
      if (current !== play.game.current || current.ended !== null) return;
      const chain = counted.dead.filter((one) => !known.includes(one));
      [this.counted, this.chains] = [counted, chain.length > 0 ? [...others, chain] : others];
    } catch (error) {
      return complain(`The stones cannot be counted: ${error.message}`);
    } finally {
      this.isAsking = false;
    }
    byId("dead").textContent = "Agree";
    byId("status").textContent = this.said;
    board.showMen(this.counted, (one) => this.mark(one));
  }

  agree() {
    const { outcome, result } = this.counted;
    this.play.game.current.ended = { outcome, why: `${result.replace(/^(\S+ wins|Draw) /, "")}, as agreed` };
    return this.play.refresh();
  }
}
