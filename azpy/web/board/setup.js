// What does a person choose for a game? One dialog asks for the side, the strength, the clock, and what only some games need.

import { rulesOf } from "./clock.js";
import { byId, offer, onClick, show } from "./dom.js";
import { newGame, offerStart } from "./handicap.js";
import { seatChoices, seats } from "./seats.js";
import { namesOf } from "./settings.js";
import { titleOf, upper } from "./sides.js";
import { readStrength, strengths, usualStrength } from "./strength.js";

const OTHER = "other"; // the choice that opens a field of its own

/** @typedef {import("./settings.js").Chosen} Chosen */

export class Setup {
  /**
   * @param {import("./play.js").Play} play
   * @param {import("./settings.js").Settings} settings
   * @param {{onStart: (game: import("./game.js").Game) => unknown, onKeep: () => unknown}} decided a new game begins,
   *   or the one on the board goes on with what was chosen
   */
  constructor(play, settings, { onStart, onKeep }) {
    [this.play, this.settings] = [play, settings];
    onClick("new", () => this.open());
    onClick("keep", () => this.take() && onKeep());
    byId("setup_form").addEventListener("submit", (/** @type {Event} */ event) => {
      event.preventDefault();
      if (this.take()) onStart(newGame(settings.model.game));
    });
    byId("game").addEventListener("change", () => this.offer());
    byId("setup_form").addEventListener("change", () => this.unfold());
    byId("strength_other").addEventListener("input", () => byId("strength_other").setCustomValidity(""));
  }

  /** A player of the game that the dialog has. */
  get model() {
    const { models, model } = this.settings;
    return models.find(({ name }) => name === byId("game").value) ?? model;
  }

  open() {
    const { models, chosen } = this.settings;
    const games = new Map([...models].reverse().map(({ game, name }) => [game, name]));
    offer("game", [...games].reverse().map(([game, name]) => [name, titleOf(game)]), games.size > 1);
    byId("game").value = games.get(chosen.game);
    byId("clock").value = chosen.clock;
    byId("throws").value = chosen.throws;
    this.offer();
    byId("setup").showModal();
  }

  /** Offers what the game has, and chooses what counts now. */
  offer() {
    const { model, settings } = this;
    const { players, strength } = settings.chosen;
    const names = namesOf(model);
    const networks = settings.playersOf(model.game).map(({ name }) => [name, name.split("/").pop() ?? name]);
    const all = names.length === 1 ? [] : [["all", names.length === 2 ? "both sides" : "all sides"]];
    const own = names.map((name, player) => [`${player}`, names.length === 1 ? "yes" : upper(name)]);
    const isFree = names.length > 2 || networks.length > 1;
    offer("side", [...own, ...all, ["none", "no: watch"], ...(isFree ? [[OTHER, "choose each side …"]] : [])]);
    offer("opponent", networks);
    const fitting = settings.fitting(players, model);
    const others = [...new Set(fitting.filter((player) => player !== ""))];
    const people = names.flatMap((_, player) => (fitting[player] === "" ? [`${player}`] : []));
    const isAll = people.length === names.length && people.length > 1;
    const isPlain = people.length < 2 && others.length < 2;
    byId("side").value = isAll ? "all" : isPlain ? (people[0] ?? "none") : isFree ? OTHER : "0";
    if (others.length > 0) [byId("opponent").value] = others;
    for (const [player, field] of seatChoices(names.length).entries()) {
      byId(`label_${player}`).textContent = upper(names[player]);
      offer(field.id, [["", "Person"], ...networks]);
      field.value = fitting[player];
    }
    const known = strengths(model);
    const now = strength || usualStrength(model);
    const isKnown = known.some(([value]) => value === now);
    offer("strength", [...known, [OTHER, "other …"]]);
    [byId("strength").value, byId("strength_other").value] = isKnown ? [now, ""] : [OTHER, now];
    byId("ladder").textContent = model.ladder;
    for (const option of byId("clock").options) {
      option.disabled = model.numPlayers !== undefined && (rulesOf(option.value)?.limit ?? null) !== null;
      option.title = option.disabled ? "Only of two players it is clear who wins on time." : "";
    }
    offerStart(model.game);
    this.unfold();
  }

  /** Shows the fields that belong to what is chosen. */
  unfold() {
    const { model, play, settings } = this;
    const [side, strength] = [byId("side").value, byId("strength").value];
    const players = namesOf(model).length;
    for (const [player, { id }] of seats("player").entries()) show(id, side === OTHER && player < players);
    show("opponent", byId("opponent").options.length > 1 && side !== "all" && side !== OTHER);
    show("strength_other", strength === OTHER);
    byId("ladder").hidden = !model.levels.some(({ name }) => name === strength);
    const isOwn = model.game === settings.model.game;
    show("throws", isOwn && play.game.line().some((position) => (position.shown?.rolls.length ?? 0) > 0));
    byId("keep").hidden = !isOwn || (play.game.root.children.length === 0 && play.game.start === null);
  }

  /** Takes what was chosen, and closes the dialog. @returns {boolean} whether it can be taken */
  take() {
    const { model } = this;
    const [side, opponent, other] = [byId("side").value, byId("opponent").value, byId("strength_other")];
    const strength = byId("strength").value === OTHER ? readStrength(other.value, model) : byId("strength").value;
    if (strength === null) {
      other.setCustomValidity("Type a number of simulations, such as 400, or seconds, such as 3 s.");
      other.reportValidity();
      return false;
    }
    const players = namesOf(model).map((_, player) => {
      if (side === OTHER) return byId(`player_${player}`).value;
      return side === "all" || side === `${player}` ? "" : opponent;
    });
    const [clock, throws] = [byId("clock").value, byId("throws").value];
    this.settings.decide({ game: model.game, players, strength, clock, throws });
    byId("setup").close();
    return true;
  }
}
