// What does the adviser say? Values of the position and of the game, the search, and an analysis of every move.

import { AGAIN, Busy, RollDue } from "./connection.js";
import { byId, onClick } from "./dom.js";
import { RUN } from "./game.js";
import { showBars, showGraph } from "./graph.js";
import { told } from "./values.js";

const AT_ONCE = 4; // searches, so that the server can evaluate them together

export class Analysis {
  constructor(play) {
    this.play = play;
    this.serial = 0; // of the analysis that goes on
    this.isOn = false;
    this.searches = new Set();
    onClick("analyse", () => (this.isOn ? this.stop("Stopped.") : this.run()));
  }

  /** Shows what is known of a position, which may be another one than before. */
  show(position, candidates, isNew) {
    const { hints, adviser } = this.play.options();
    byId("no_hints").hidden = hints;
    byId("hinted").hidden = byId("bars").hidden = !hints;
    const unknown = adviser === RUN ? "The run stored no search of this position." : "The search has not begun.";
    byId("no_candidates").textContent = position.outcome === null ? unknown : "The game is over.";
    const label = (move) => position.shortOf(move) ?? move;
    const answer = (hints ? position.finds.get(adviser)?.answer : null) ?? null;
    if (position.shown !== null) candidates.show(answer?.moveInfos ?? [], label, isNew);
    if (!hints) return;
    const { game, names } = this.play;
    byId("analyse").disabled = adviser === RUN;
    byId("root").textContent = answer === null ? "" : rootText(answer, names);
    showBars(position.values(adviser), names, game.isZeroSum);
    showGraph(game, adviser, names, (chosen) => this.play.goTo(chosen));
  }

  /** Searches every position of the line that the adviser has not searched as long. */
  async run() {
    this.stop("");
    this.isOn = true;
    const { serial } = this;
    const { adviser, hintSimulations: simulations } = this.play.options();
    const isOpen = (one) => one.outcome === null && (one.finds.get(adviser)?.visits ?? 0) < simulations;
    try {
      const { models } = await this.play.connection.ask({ action: "query_models" }).answer;
      if (serial !== this.serial) return;
      this.play.game.know(models);
      const open = this.play.game.line().filter(isOpen);
      const all = open.length;
      let done = 0;
      const goOn = async () => {
        for (let one = open.pop(); one !== undefined && serial === this.serial; one = open.pop()) {
          this.say(`${done} of ${all}`, done / all);
          await this.search(one, adviser, simulations);
          done += 1;
        }
      };
      await Promise.all(Array.from({ length: AT_ONCE }, goOn));
      if (serial === this.serial) this.stop("Every move is analyzed.");
    } catch (error) {
      if (serial === this.serial) this.stop(`The analysis failed: ${error.message}`);
    }
  }

  /** Searches a position, which learns what is found. A busy server is asked again. */
  async search(position, adviser, simulations) {
    const [{ serial }, asked] = [this, this.play.search(position, adviser, { simulations })];
    this.searches.add(asked);
    try {
      await asked.answer;
    } catch (error) {
      if (error instanceof RollDue) return;
      if (!(error instanceof Busy)) throw error;
      await new Promise((resolve) => setTimeout(resolve, AGAIN));
      if (serial === this.serial) return this.search(position, adviser, simulations);
    } finally {
      this.searches.delete(asked);
    }
  }

  /** Ends the searches; what they found stays. */
  stop(why) {
    this.serial += 1;
    this.isOn = false;
    for (const search of this.searches) search.stop();
    this.say(why, null);
  }

  /** Says how far it is; `share` is null if nothing is searched. */
  say(text, share) {
    byId("analysed").textContent = text;
    byId("analysing").hidden = share === null;
    byId("analysing").value = share ?? 0;
    byId("analyse").textContent = share === null ? "Analyze every move" : "Stop";
  }
}

function rootText({ rootInfo, isDuringSearch, isStored }, names) {
  const reused = rootInfo.reused > 0 ? `, ${rootInfo.reused} of them from before` : "";
  const network = rootInfo.network ? `, network ${rootInfo.network.slice(0, 8)}` : "";
  const each = rootInfo.values?.map((one, player) => `${told(one)} for ${names[player]}`);
  const value = `value ${each?.join(", ") ?? `${told(rootInfo.value)} for the player to move`}`;
  const when = isStored ? "When the run played" : isDuringSearch ? "Searching" : "Searched";
  return `${when}: ${rootInfo.visits} visits${reused}, ${value}${network}.`;
}
