// What did the person choose? The controls of players, levels and hints; they are kept in this browser.

import { rulesOf } from "./clock.js";
import { byId, fill, make, onClick } from "./dom.js";
import { RUN } from "./game.js";
import { seat, seats } from "./seats.js";
import { offerStart } from "./setup.js";
import { colorOf, sides, upper } from "./sides.js";
import { store, stored } from "./storage.js";
import { tellPercent } from "./values.js";

const ADVISERS = ["adviser", "beside"];
const KEPT = ["level", "simulations", "seconds", "clock", "throws", "look", "sounds", "hint_simulations", "scale"];
const CHANGING = ["level", "simulations", "seconds", "adviser", "beside", "hint_simulations", "hints", "throws", "scale"];
const STORE = "azpy board settings";

/** @typedef {{name: string, game: string, internalName: string, simulations: number,
 *   limits: {simulations: number, seconds: number},
 *   levels: {name: string, elo?: number}[], ladder: string,
 *   format: string | null, numPlayers?: number, sideNames: string[] | null, canRotate: boolean}} Model
 *   `numPlayers` is there where two players do not share a zero sum */

export class Settings {
  /**
   * @param {{onGame: () => void, onPlay: () => void, onPlayers: () => void, onClock: () => void}} heard what changed
   */
  constructor({ onGame, onPlay, onPlayers, onClock }) {
    /** @type {Model[]} */
    this.models = [];
    byId("game").addEventListener("change", () => {
      this.fillPlayers();
      onGame();
    });
    onClick("swap", () => {
      this.swap();
      onPlayers();
    });
    byId("setup").addEventListener("change", (/** @type {Event} */ { target }) => {
      if (!(target instanceof Element) || !target.matches("[id^=player_]")) return;
      this.name();
      onPlayers();
    });
    for (const id of [...CHANGING, "look", "sounds"]) {
      byId(id).addEventListener("change", () => {
        this.bound();
        this.name();
        this.keep();
        tellPercent(byId("scale").value !== "");
        onPlay();
      });
    }
    byId("clock").addEventListener("change", () => {
      this.keep();
      onClock();
    });
    const kept = stored(STORE) ?? {};
    this.wasKept = typeof kept.simulations === "string";
    this.level = typeof kept.level === "string" ? kept.level : "";
    for (const id of KEPT) if (typeof kept[id] === "string") byId(id).value = kept[id];
    tellPercent(byId("scale").value !== "");
  }

  /**
   * @param {Model[]} models what the server has; the first game is chosen, unless another was
   * @returns {boolean} whether the same game is chosen
   */
  offer(models) {
    const isFirst = this.models.length === 0;
    const before = isFirst ? null : this.model.game;
    this.models = models;
    const games = new Map([...models].reverse().map((model) => [model.game, model.name]));
    const options = [...games].reverse().map(([game, value]) => make("option", { value }, game));
    fill(byId("game"), options);
    for (const id of isFirst ? ["simulations", "hint_simulations"] : []) {
      if (!this.wasKept && byId(id).value === "") byId(id).value = `${this.model.simulations}`;
    }
    return this.choose(before ?? this.model.game) && !isFirst;
  }

  /** A player of the game. @returns {Model} */
  get model() {
    return this.models.find((model) => model.name === byId("game").value) ?? this.models[0];
  }

  /** Whether two players play, and one loses what the other wins. */
  get isZeroSum() {
    return this.model.numPlayers === undefined;
  }

  get names() {
    return sides(this.model.sideNames, this.model.numPlayers ?? 2);
  }

  /** Offers the players of the game. Those that were chosen stay, if they play it. */
  fillPlayers() {
    const fitting = this.models.filter((model) => model.game === this.model.game);
    const networks = () => fitting.map((model) => make("option", { value: model.name }, `Network ${model.name}`));
    const isFirst = byId("adviser").options.length === 0;
    const before = [this.options.players, ADVISERS.map((id) => byId(id).value)];
    seat(this.names.length);
    for (const [player, name] of this.names.entries()) {
      byId(`label_${player}`).textContent = upper(name);
      fill(byId(`player_${player}`), [make("option", { value: "" }, "Person"), ...networks()]);
      byId(`player_${player}`).value = player === 0 ? "" : this.model.name;
      byId(`side_${player}`).className = `side ${colorOf(name, player, this.isZeroSum)}`;
    }
    byId("swap").hidden = this.names.length === 1;
    byId("swap").textContent = this.names.length === 2 ? "Swap sides" : "Move on by one seat";
    for (const option of byId("clock").options) {
      option.disabled = !this.isZeroSum && (rulesOf(option.value)?.limit ?? null) !== null;
      option.title = option.disabled ? "Time limits work only for two players with a zero sum." : "";
    }
    const run = [...byId("adviser").options].filter((option) => option.value === RUN);
    fill(byId("adviser"), [...run, ...networks()]);
    fill(byId("beside"), [make("option", { value: "" }, "Nobody"), ...networks()]);
    for (const one of document.querySelectorAll(".beside_choice")) one.toggleAttribute("hidden", fitting.length < 2);
    offerStart(this.model.game);
    this.fillLevels();
    if (!isFirst) this.take(...before);
    this.bound();
    this.name();
  }

  /** Offers the levels of the game's first network: those of all networks have the same names. */
  fillLevels() {
    const { levels, ladder } = this.model;
    const told = (/** @type {{name: string, elo?: number}} */ { name, elo }) =>
      elo === undefined ? upper(name) : `${upper(name)} (Elo ${elo})`;
    const options = levels.map((level) => make("option", { value: level.name }, told(level)));
    fill(byId("level"), [make("option", { value: "" }, "By the limits below"), ...options]);
    byId("level").value = levels.some(({ name }) => name === this.level) ? this.level : "";
    byId("ladder").textContent = ladder;
  }

  /**
   * Chooses a game.
   * @param {string} game
   * @returns {boolean} whether the server plays it
   */
  choose(game) {
    const found = this.models.find((model) => model.game === game);
    if (found !== undefined) byId("game").value = found.name;
    this.fillPlayers();
    return found !== undefined;
  }

  /** The choices of who plays, one a player. @returns {HTMLSelectElement[]} */
  get seated() {
    return seats("player").filter((one) => !one.hidden);
  }

  /** Chooses players and advisers, those of them that are there. @param {string[]} players @param {string[]} advisers */
  take(players, advisers) {
    const choose = (/** @type {any} */ field, /** @type {string | undefined} */ value) => {
      if ([...field.options].some((option) => option.value === value)) field.value = value;
    };
    for (const [player, field] of this.seated.entries()) choose(field, players[player]);
    for (const [index, id] of ADVISERS.entries()) choose(byId(id), advisers[index]);
    this.name();
  }

  /** Gives each seat the player of the one before: two players are exchanged. */
  swap() {
    const { players } = this.options;
    this.take([...players.slice(-1), ...players.slice(0, -1)], []);
  }

  /** Offers what the run thought when it played the game. @param {boolean} isStored whether it is known */
  offerRun(isStored) {
    const adviser = byId("adviser");
    const known = [...adviser.options].find((option) => option.value === RUN);
    if (isStored && known === undefined) adviser.prepend(make("option", { value: RUN }, "The run, when it played"));
    if (!isStored) known?.remove();
    if (isStored) adviser.value = RUN;
  }

  /** Keeps to the limits of the server. A level has its own number of simulations. */
  bound() {
    this.level = byId("level").value;
    byId("simulations").disabled = this.level !== "";
    byId("ladder").hidden = this.level === "";
    const { simulations, seconds } = this.model.limits;
    for (const [id, most] of Object.entries({ simulations, hint_simulations: simulations, seconds })) {
      const field = byId(id);
      field.max = `${most}`;
      if (field.validity.rangeOverflow) field.value = field.max;
      if (field.validity.rangeUnderflow) field.value = field.min;
    }
  }

  /** Says who plays, beside the board. */
  name() {
    for (const [player, name] of this.names.entries()) {
      byId(`name_${player}`).textContent = upper(name);
      const [chosen] = byId(`player_${player}`).selectedOptions;
      const level = chosen?.value && this.level ? `, ${this.level}` : "";
      const who = byId(`who_${player}`);
      who.textContent = who.title = `${chosen?.textContent ?? ""}${level}`; // where there is no room the title says it
    }
  }

  /** @returns {import("./play.js").Options} */
  get options() {
    const seconds = above(byId("seconds").value, 0.001);
    const level = byId("level").value;
    const simulations = level === "" ? whole(byId("simulations").value) : null;
    return {
      model: this.model.name,
      adviser: byId("adviser").value,
      beside: byId("beside").value,
      players: this.seated.map(({ value }) => value),
      level: level === "" ? null : level,
      simulations: simulations ?? (seconds === null && level === "" ? this.model.simulations : null),
      seconds,
      hintSimulations: whole(byId("hint_simulations").value) ?? this.model.simulations,
      hints: byId("hints").checked,
      throws: byId("throws").value === "page",
    };
  }

  /** Null for no clock. Only of two players it is clear who wins on time: the clocks of others count up. */
  get clock() {
    const rules = rulesOf(byId("clock").value);
    return rules === null || this.isZeroSum ? rules : { ...rules, limit: null };
  }

  keep() {
    store(STORE, Object.fromEntries(KEPT.map((id) => [id, byId(id).value])));
  }
}

/** @param {string} text @param {number} least */
function above(text, least) {
  const number = Number(text);
  return text.trim() !== "" && Number.isFinite(number) && number >= least ? number : null;
}

/** @param {string} text */
function whole(text) {
  const number = above(text, 1);
  return number === null ? null : Math.floor(number);
}
