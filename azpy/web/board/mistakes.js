// Can the person do better? After a game each bad move is tried again, without hints, and the adviser compares both.

import { byId, onClick, write } from "./dom.js";
import { RUN } from "./game.js";
import { judged, toldLoss } from "./values.js";

/** @typedef {import("./game.js").Position} Position */

export class Mistakes {
  /** @param {import("./play.js").Play} play @param {import("./analysis.js").Analysis} analysis */
  constructor(play, analysis) {
    [this.play, this.analysis] = [play, analysis];
    this.reset();
    onClick("mistakes", () => this.next());
  }

  reset() {
    this.game = this.play.game;
    /** @type {Position[] | null} the bad moves that are left; null while none is tried again */
    this.left = null;
    /** @type {Position | null} the bad move that is tried again */
    this.at = null;
    /** @type {Position | null} the try that was compared last */
    this.tried = null;
    this.end = this.game.current;
    write(byId("tried"), "");
  }

  /** Offers to try again where the game is over. @param {Position} position */
  show(position) {
    if (this.game !== this.play.game) this.reset();
    const { adviser, players } = this.play.options();
    const isPossible = position.outcome !== null && position.parent !== null && players.includes("") && adviser !== RUN;
    byId("mistakes").hidden = !isPossible && this.left === null;
    const [isOn, isLast] = [this.left !== null, this.left?.length === 0];
    write(byId("mistakes"), !isOn ? "Try your mistakes again" : isLast ? "Back to the end" : "Next mistake");
    if (position === this.at?.parent) this.tried = null;
    const isTry = this.at !== null && position.parent === this.at.parent && position !== this.tried;
    if (isTry) return this.compare(position, /** @type {Position} */ (this.at));
  }

  /** Goes to the position before the next bad move. */
  async next() {
    const { play } = this;
    if (this.left === null && !(await this.find())) return;
    this.at = this.left?.shift() ?? null;
    play.isPaused = this.at !== null; // the network does not answer a try
    if (this.at === null) {
      const { end } = this;
      this.reset();
      return play.goTo(end);
    }
    const { adviser, hintSimulations } = play.options();
    const lost = toldLoss(this.at.loss(adviser, hintSimulations) ?? 0);
    write(byId("tried"), `Move ${this.at.ply}: ${this.at.label} lost ${lost}. Find a better move.`);
    return play.goTo(/** @type {Position} */ (this.at.parent));
  }

  /** Analyzes the game. @returns {Promise<boolean>} whether a person played a bad move */
  async find() {
    const { game } = this.play;
    this.reset();
    if (byId("hints").checked) byId("hints").click();
    write(byId("tried"), "Your moves are analyzed …");
    const line = game.line();
    await this.analysis.run();
    if (game !== this.play.game) return false;
    const { adviser, hintSimulations: least, players } = this.play.options();
    const own = line.filter(({ mover }) => players[mover ?? -1] === "");
    const found = own.filter((one) => judged(one.loss(adviser, least)) !== null);
    this.left = found.length > 0 ? found : null;
    const isDone = line.every((one) => one.outcome !== null || one.finds.has(adviser) || one.shown?.player === null);
    write(byId("tried"), isDone ? "No mistake was found." : `${byId("analysed").textContent}`);
    return found.length > 0;
  }

  /** Says whether another move is better than the bad one. @param {Position} position after the try @param {Position}
   * bad */
  async compare(position, bad) {
    this.tried = position;
    if (position === bad) return write(byId("tried"), `${bad.label} was your move. Go back and try another one.`);
    const { adviser, hintSimulations: least } = this.play.options();
    write(byId("tried"), `${position.label} is compared with ${bad.label} …`);
    try {
      if (position.outcome === null) await this.analysis.search(position, adviser, least);
    } catch {
      // The connection says what is wrong.
    }
    if (this.tried !== position) return;
    const [loss, before] = [position, bad].map((one) => one.loss(adviser, least));
    if (loss === null || before === null) return write(byId("tried"), `${position.label} cannot be compared.`);
    const word = judged(loss) === null ? "Good" : loss < before ? "Better" : "Not better";
    const lost = `${position.label} loses ${toldLoss(Math.max(0, loss))}, and ${bad.label} lost ${toldLoss(before)}`;
    write(byId("tried"), `${word}: ${lost}.`);
  }
}
