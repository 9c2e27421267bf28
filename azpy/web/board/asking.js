// What is asked of the server about positions? What lies there, and what networks find.

import { AGAIN, Busy, Lost } from "./connection.js";
import { announce, complain, messageOf } from "./dom.js";
import { foundOf, RUN } from "./game.js";
import { placesOf } from "./places.js";
import { drawn } from "./position.js";
import { lastTurn } from "./turns.js";
import { told } from "./values.js";

export const REPORTS = 0.3; // seconds between two reports of a search
const LONGEST_LINE = 20; // moves of a principal variation

/** Asks for the game on the board. `onChange` is called when there is something else to see, with whether the position
 * is another one. */
export class Asking {
  constructor(connection, game, options, onChange) {
    [this.connection, this.game, this.options, this.onChange] = [connection, game, options, onChange];
    this.isPaused = false;
    this.isThinking = false; // whether a network is about to move
    this.isRefused = false; // whether the server takes no query now
    this.serial = 0; // of the position or the options that count now
    this.tag = `${Date.now()}`; // of the searches whose tree is kept
    this.searches = [];
  }

  /** What a query says of a position. */
  where(moves, model, game = this.game) {
    return { model, moves, includeShortNames: true, ...(game.start === null ? {} : { position: game.start }) };
  }

  /** Asks the server for a position. */
  async show(moves, game = this.game, model = this.options().model) {
    const notes = drawn(game.at(moves)?.notes ?? {});
    const where = this.where(moves, model, game);
    const shown = await this.connection.ask({ action: "show", ...where, notes }).answer;
    // Of two players who share a zero sum the server says one number.
    const { outcome = null, outcomes = outcome === null ? null : [outcome, -outcome] } = shown;
    return { ...shown, outcomes, places: placesOf(shown, game) };
  }

  /** Has the moves of the last turn known, with their places on the board, where the game came from a file: the
   * position before a move says them. */
  async lookBack(serial, game) {
    try {
      for (const { parent: one } of lastTurn(game.current, game.names.length)) {
        if (one === null || one.shown !== null) continue;
        one.shown = await this.show(one.moves(), game);
        if (serial !== this.serial) return;
        this.onChange(false);
      }
    } catch {
      // The mark of a move is worth no alarm.
    }
  }

  /** Has a player search, and the position learn what the search finds. `asked` has the limits, and more of the query. */
  search(position, model, asked) {
    const learn = (answer) => {
      const { value, network } = answer.rootInfo;
      if (value === null) return; // the game is over there
      this.game.know([{ name: model, network }]);
      position.learn(model, foundOf(answer));
      this.onChange(false);
    };
    return this.branch(position.moves(), model, asked, learn);
  }

  /** Has a player search a position that need not be in the record. */
  branch(moves, model, asked, each) {
    const usual = { priority: "analysis", analysisPVLen: LONGEST_LINE, includeLcb: false };
    return this.connection.ask({ ...this.where(moves, model), ...usual, ...asked }, each);
  }

  /** Waits for a search, which ends when another position counts: then it gives null. */
  async found(serial, search, onError) {
    this.searches.push(search);
    try {
      const answer = await search.answer;
      return serial === this.serial ? answer : null;
    } catch (error) {
      if (serial !== this.serial) return null;
      const isPassing = error instanceof Busy || error instanceof Lost;
      if (!isPassing) complain(`The search failed: ${messageOf(error)}`);
      onError(error);
      this.onChange(false);
      return null;
    }
  }

  /** Asks again in a while, unless another position counts then: the server has too much to do, or it ends. */
  later(serial, ask) {
    setTimeout(() => serial === this.serial && ask(), AGAIN);
  }

  /** Searches for a hint where one is wanted and not known yet, and then asks what the network alone says. */
  async advise(serial, position) {
    const { hints, adviser: model, hintSimulations: simulations, players } = this.options();
    const isMovers = this.isThinking && model === players[position.shown.player]; // its search is shown as it goes on
    const isKnown = (position.finds.get(model)?.visits ?? 0) >= simulations;
    if (!hints || isMovers || isKnown || model === RUN) return;
    const onError = (error) => {
      if (error instanceof Busy) this.later(serial, () => this.advise(serial, position));
    };
    const asked = { simulations, game: `${this.tag} hints`, reportDuringSearchEvery: REPORTS };
    const answer = await this.found(serial, this.search(position, model, asked), onError);
    const [best] = answer?.moveInfos ?? [];
    if (best) announce(`Best: ${best.pvShort[0]}, value ${told(best.value)}`);
    const network = answer?.rootInfo.network ?? null;
    if (network === null || position.alone?.network === network) return;
    // The value of a search is the mean of the network's own and those of its visits: here of one.
    const short = await this.found(serial, this.branch(position.moves(), model, { simulations: 1 }), onError);
    // A proven value is no mean.
    if (short === null || short.rootInfo.stop === "proven") return;
    const [{ visits, value }, once] = [short.rootInfo, short.moveInfos[0]];
    position.alone = { network, value: value * (visits + 1) - once.value * once.visits };
    this.onChange(false);
  }
}
