// Can the person do better? Why is a move bad? After a game each bad move is tried again, without hints, and the adviser
// compares both. Of any bad move the line is played that refutes it.

import { byId, onClick, write } from "./dom.js";
import { RUN } from "./game.js";
import { judged, told, toldLoss } from "./values.js";

const LONGEST = 40; // moves of a line that refutes a move

export class Mistakes {
  constructor(play, analysis) {
    [this.play, this.analysis] = [play, analysis];
    this.reset();
    onClick("mistakes", () => this.next());
    onClick("why", () => this.why());
  }

  reset() {
    this.game = this.play.game;
    this.left = null; // the bad moves that are left; null while none is tried again
    this.at = null; // the bad move that is tried again
    this.tried = null; // the try that was compared last
    this.line = []; // a bad move and the line that refutes it, while they are told
    this.end = this.game.current;
    write(byId("tried"), "");
  }

  /** Offers to try again where the game is over, and to refute a bad move. */
  show(position) {
    if (this.game !== this.play.game) this.reset();
    const { adviser, players } = this.play.options();
    const isPossible = position.outcome !== null && position.parent !== null && players.includes("") && adviser !== RUN;
    byId("mistakes").hidden = !isPossible && this.left === null;
    const [isOn, isLast] = [this.left !== null, this.left?.length === 0];
    write(byId("mistakes"), !isOn ? "Try your mistakes again" : isLast ? "Back to the end" : "Next mistake");
    const { bad } = this;
    byId("why").hidden = bad === null;
    write(byId("why"), `Why not ${bad?.label}?`);
    if (this.line.length > 0 && !this.line.includes(position)) {
      this.line = [];
      write(byId("tried"), "");
    }
    if (position === this.at?.parent) this.tried = null;
    const isTry = this.at !== null && position.parent === this.at.parent && position !== this.tried;
    if (isTry && this.line.length === 0) return this.compare(position, this.at);
  }

  /** The bad move that can be refuted: of the board, or the one before it. */
  get bad() {
    const { current } = this.play.game;
    const { adviser, hintSimulations: least, hints } = this.play.options();
    if (adviser === RUN || !(hints || this.left !== null)) return null;
    const isBad = (one) => one?.outcome === null && judged(one.loss(adviser, least)) !== null;
    return [current, current === this.at?.parent ? this.at : current.parent].find(isBad) ?? null;
  }

  /** Plays the line that refutes a bad move, as a variation: to its proven end, or until a search finds no better
   * value there than at its start. */
  async why() {
    const { play, bad, game } = this;
    if (bad === null) return;
    const { current } = game;
    const { adviser, hintSimulations: simulations } = play.options();
    const [{ answer, values }, before] = [bad, bad.parent].map((one) => one.finds.get(adviser));
    const [[reply], [better], mover] = [answer.moveInfos, before.answer.moveInfos, bad.mover ?? 0];
    play.isPaused = true; // networks do not go on where the line ends
    write(byId("tried"), `What ${bad.label} allows is searched …`);
    const line = [bad];
    try {
      for (let [end, best] = [bad, reply]; best !== undefined && line.length < LONGEST; ) {
        for (const [at, move] of best.pv.entries()) {
          end = end.children.find((one) => one.move === move) ?? end.add(move, best.pvShort[at]);
          line.push(end);
        }
        await this.analysis.search(end, adviser, simulations);
        const found = end.finds.get(adviser);
        const isHeld = found !== undefined && judged(found.values[mover] - values[mover]) === null;
        best = isHeld && best.proof === undefined ? undefined : found?.answer.moveInfos[0];
      }
    } catch (error) {
      return write(byId("tried"), `This cannot be searched: ${error.message}`);
    }
    if (game !== play.game) return;
    if (current !== game.current) return write(byId("tried"), "");
    const ends = reply.value > 0.5 ? "wins" : reply.value < -0.5 ? "loses" : "draws";
    const how =
      reply.proof === undefined ? `is worth ${told(reply.value)} for ${play.names[answer.rootInfo.player]}`
      : reply.proof === 0 ? `${ends} at once`
      : `${ends} in ${reply.proof + 1} plies`;
    const isTold = this.left === null && better.move !== bad.move; // who tries again shall find it
    const instead = isTold ? ` ${better.pvShort[0]} was better: ${told(better.value)}.` : "";
    this.line = line;
    write(byId("tried"), `After ${bad.label}, ${reply.pvShort[0]} ${how}.${instead}`);
    game.goTo(line.at(-1)); // so that keys go on through the line
    return play.goTo(line[1]);
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
    return play.goTo(this.at.parent);
  }

  /** Analyzes the game. Returns whether a person played a bad move. */
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

  /** Says whether another move, after which the position is, is better than the bad one. */
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
