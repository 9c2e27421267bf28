// What does a person choose for a game? One dialog asks for the side, the strength, the clock, and what only some games need.

import { rulesOf } from "./clock.js";
import { byId, offer, onClick, show } from "./dom.js";
import { namesOf, seatChoices, seats, titleOf, upper } from "./seats.js";
import { readStrength, strengths, usualStrength } from "./strength.js";

const OTHER = "other"; // the choice that opens a field of its own

export class Setup {
  /** `onStart` begins a new game, `onKeep` goes on with the one on the board and what was chosen. */
  constructor(play, settings, { onStart, onKeep }) {
    [this.play, this.settings] = [play, settings];
    onClick("new", () => this.open());
    onClick("keep", () => this.take() && onKeep());
    byId("setup_form").addEventListener("submit", (event) => {
      event.preventDefault();
      if (this.take()) onStart();
    });
    byId("game").addEventListener("change", () => this.offer());
    byId("setup_form").addEventListener("change", () => this.unfold());
  }

  /** A player of the game that the dialog has. */
  get model() {
    const { models, model } = this.settings;
    return models.find(({ name }) => name === byId("game").value) ?? model;
  }

  open() {
    const { models, model, chosen } = this.settings;
    const firsts = models.filter(({ game }, index) => models.findIndex((one) => one.game === game) === index);
    offer("game", firsts.map(({ game, name }) => [name, titleOf(game)]), firsts.length > 1);
    byId("game").value = model.name;
    byId("clock").value = chosen.clock;
    byId("throws").value = chosen.throws;
    this.offer();
    byId("setup").showModal();
  }

  /** Offers what the game has, and chooses what counts now. */
  offer() {
    const { model, settings } = this;
    const names = namesOf(model);
    const networks = settings.playersOf(model.game).map(({ name }) => [name, settings.called(name, model.game)]);
    const players = settings.fitting(settings.chosen.players, model);
    const all = names.length === 1 ? [] : [["all", names.length === 2 ? "both sides" : "all sides"]];
    const own = names.map((name, player) => [`${player}`, names.length === 1 ? "yes" : upper(name)]);
    const isFree = names.length > 2 || networks.length > 1;
    offer("side", [...own, ...all, ["none", "no: watch"], ...(isFree ? [[OTHER, "choose each side …"]] : [])]);
    for (const [player, field] of seatChoices(names.length).entries()) {
      byId(`label_${player}`).textContent = upper(names[player]);
      offer(field.id, [["", "Person"], ...networks]);
      field.value = players[player];
    }
    const known = [...byId("side").options].map(({ value }) => value);
    byId("side").value = known.find((side) => `${this.players(side)}` === `${players}`) ?? OTHER;
    const strength = settings.chosen.strength || usualStrength(model);
    const isOther = strengths(model).every(([value]) => value !== strength);
    offer("strength", [...strengths(model), [OTHER, "other …"]]);
    [byId("strength").value, byId("strength_other").value] = isOther ? [OTHER, strength] : [strength, ""];
    byId("ladder").textContent = model.ladder;
    for (const option of byId("clock").options) {
      option.disabled = model.numPlayers !== undefined && (rulesOf(option.value)?.limit ?? null) !== null;
      option.title = option.disabled ? "Time limits work only for two players with a zero sum." : "";
    }
    this.unfold();
  }

  /** Who plays if a person plays this side of the list. */
  players(side) {
    return namesOf(this.model).map((_, player) => {
      if (side === OTHER) return byId(`player_${player}`).value;
      return side === "all" || side === `${player}` ? "" : this.model.name;
    });
  }

  /** Shows the fields that belong to what is chosen. */
  unfold() {
    const { model, play, settings } = this;
    const players = byId("side").value === OTHER ? namesOf(model).length : 0;
    for (const [player, { id }] of seats("player").entries()) show(id, player < players);
    const isOther = byId("strength").value === OTHER;
    show("strength_other", isOther);
    byId("strength_other").disabled = !isOther; // what is not seen is not checked
    byId("ladder").hidden = !model.levels.some(({ name }) => name === byId("strength").value);
    const isOwn = model.game === settings.model.game;
    show("throws", isOwn && play.game.line().some((position) => (position.shown?.rolls.length ?? 0) > 0));
    byId("keep").hidden = !isOwn || (play.game.root.children.length === 0 && play.game.start === null);
  }

  /** Takes what was chosen, and closes the dialog. Returns whether it can be taken. */
  take() {
    const [{ model }, field, other] = [this, byId("strength"), byId("strength_other")];
    if (!byId("setup_form").reportValidity()) return false;
    const given = field.value === OTHER ? readStrength(other.value, model) : field.value;
    const [players, strength] = [this.players(byId("side").value), given === usualStrength(model) ? "" : given];
    byId("setup").close();
    this.settings.decide({ game: model.game, players, strength, clock: byId("clock").value, throws: byId("throws").value });
    return true;
  }
}
