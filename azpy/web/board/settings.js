// What did the person choose? The game, who plays how strongly, and the controls of sounds and hints: this browser keeps it.

import { rulesOf } from "./clock.js";
import { byId, offer } from "./dom.js";
import { RUN } from "./game.js";
import { colorOf, namesOf, seat, titleOf, upper } from "./seats.js";
import { store, stored } from "./storage.js";
import { limitsOf, strengthOf, usualStrength } from "./strength.js";
import { tellPercent } from "./values.js";

const KEPT = ["sounds", "hint_simulations", "scale"];
const STORE = "azpy board settings";

export class Settings {
  /** `onPlay` is called when something else counts from now on. */
  constructor(onPlay) {
    this.models = [];
    for (const id of [...KEPT, "adviser", "hints"]) {
      byId(id).addEventListener("change", () => {
        this.bound();
        this.keep();
        onPlay();
      });
    }
    const { strength = "", clock = "", throws = "page", ...kept } = stored(STORE) ?? {};
    for (const id of KEPT) byId(id).value = kept[id] ?? byId(id).value;
    // What a dialog asks for; `players` has the model of each side, empty for a person.
    this.chosen = { game: "", players: [], strength, clock, throws };
    tellPercent(byId("scale").value !== "");
  }

  /** Takes the players that the server has. The first game is chosen, unless another was. Returns whether the same game
   * is chosen. */
  offer(models) {
    this.models = models;
    byId("hint_simulations").value ||= `${models[0].simulations}`;
    return this.choose(this.chosen.game);
  }

  /** A player of the game. It has `numPlayers` where two players do not share a zero sum. */
  get model() {
    return this.models.find((model) => model.game === this.chosen.game) ?? this.models[0];
  }

  playersOf(game = this.model.game) {
    return this.models.filter((model) => model.game === game);
  }

  /** What a network is called: by its name where the game has several. */
  called(name, game = this.model.game) {
    return this.playersOf(game).length === 1 ? "azpy" : (name.split("/").pop() ?? name);
  }

  /** Who plays a side, in words: "You" is the only person. */
  whoIs(player) {
    const { players } = this.chosen;
    const [own, side] = [players[player], upper(this.names[player])];
    const isOnly = players.filter((one) => one === own).length === 1;
    if (own === "") return isOnly ? "You" : side;
    return isOnly ? this.called(own) : `${this.called(own)} (${side})`;
  }

  /** Whether two players play, and one loses what the other wins. */
  get isZeroSum() {
    return this.model.numPlayers === undefined;
  }

  get names() {
    return namesOf(this.model);
  }

  /** Chooses a game. Players that play it stay. Returns whether the server plays it. */
  choose(game) {
    const isThere = this.models.some((model) => model.game === game);
    this.chosen.game = isThere ? game : this.model.game;
    seat(this.names.length);
    for (const [player, name] of this.names.entries()) {
      byId(`side_${player}`).className = `side ${colorOf(name, player, this.isZeroSum)}`;
    }
    this.offerAdvisers();
    byId("about").textContent = titleOf(this.model.game);
    byId("rules").textContent = this.model.rules ?? "";
    this.take(this.chosen.players);
    this.bound();
    return isThere;
  }

  /** Who plays a game: those that play it stay. */
  fitting(players, model) {
    const known = ["", ...this.playersOf(model.game).map(({ name }) => name)];
    return namesOf(model).map((_, player) => {
      return known.includes(players[player]) ? players[player] : player === 0 ? "" : model.name;
    });
  }

  /** Chooses players, and the adviser if it is there. */
  take(players, adviser = byId("adviser").value) {
    this.chosen.players = this.fitting(players, this.model);
    if ([...byId("adviser").options].some(({ value }) => value === adviser)) byId("adviser").value = adviser;
    this.name();
  }

  decide(chosen) {
    this.chosen = { ...chosen };
    this.choose(chosen.game);
    this.keep();
  }

  /** Offers what the run thought when it played the game, if that is known. */
  offerRun(isStored) {
    this.offerAdvisers(isStored);
    if (isStored) byId("adviser").value = RUN;
  }

  offerAdvisers(isStored = byId("adviser").options[0]?.value === RUN) {
    const networks = this.playersOf().map(({ name }) => [name, this.called(name)]);
    const advisers = isStored ? [[RUN, "The run, when it played"], ...networks] : networks;
    offer("adviser", advisers, advisers.length > 1);
  }

  /** Keeps to the limits of the server. */
  bound() {
    const field = byId("hint_simulations");
    field.max = `${this.model.limits.simulations}`;
    if (field.validity.rangeOverflow) field.value = field.max;
    if (field.validity.rangeUnderflow) field.value = field.min;
    tellPercent(byId("scale").value !== "");
  }

  /** How strongly networks play, as `limitsOf` reads it. */
  get strength() {
    return this.chosen.strength || usualStrength(this.model);
  }

  /** Says who plays, beside the board. */
  name() {
    for (const [player, name] of this.names.entries()) {
      const [own, side, field] = [this.chosen.players[player], upper(name), byId(`who_${player}`)];
      const who = own === "" ? this.whoIs(player) : `${this.called(own)}, ${strengthOf(this.strength)}`;
      field.textContent = field.title = who; // where there is no room the title says it
      byId(`name_${player}`).textContent = who === side || this.names.length === 1 ? "" : `(${side})`;
    }
  }

  get options() {
    const { players, throws } = this.chosen;
    return {
      limits: limitsOf(this.strength, this.model), // of a network's move
      model: this.model.name, // that shows positions
      adviser: byId("adviser").value,
      players,
      hintSimulations: Math.floor(Number(byId("hint_simulations").value)) || this.model.simulations,
      hints: byId("hints").checked,
      throws: throws === "page",
    };
  }

  /** Null for no clock. Only of two players it is clear who wins on time: the clocks of others count up. */
  get clock() {
    const rules = rulesOf(this.chosen.clock);
    return rules === null || this.isZeroSum ? rules : { ...rules, limit: null };
  }

  keep() {
    const { strength, clock, throws } = this.chosen;
    store(STORE, { strength, clock, throws, ...Object.fromEntries(KEPT.map((id) => [id, byId(id).value])) });
  }
}
