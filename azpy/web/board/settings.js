// What did the person choose? The controls of players, levels and hints; they are kept in this browser.

import { byId, fill, make } from "./dom.js";
import { RUN } from "./game.js";
import { sides, upper } from "./sides.js";
import { store, stored } from "./storage.js";
import { tellPercent } from "./values.js";

const CHOSEN = ["player_0", "player_1", "adviser"];
const KEPT = ["level", "simulations", "seconds", "clock", "throws", "hint_simulations", "scale"];
const STORE = "azpy board settings";

/** @typedef {{name: string, game: string, internalName: string, simulations: number,
 *   limits: {simulations: number, seconds: number},
 *   levels: {name: string, elo?: number}[], ladder: string,
 *   format: string | null, sideNames: [string, string] | null, canRotate: boolean}} Model */

export class Settings {
  /**
   * @param {{onGame: () => void, onPlay: () => void, onPlayers: () => void, onSwap: () => void, onClock: () => void}}
   *   heard what changed
   */
  constructor({ onGame, onPlay, onPlayers, onSwap, onClock }) {
    /** @type {Model[]} */
    this.models = [];
    byId("game").addEventListener("change", () => {
      this.fillPlayers();
      onGame();
    });
    byId("swap").addEventListener("click", () => {
      const [first, second] = [byId("player_0"), byId("player_1")];
      [first.value, second.value] = [second.value, first.value];
      this.name();
      onSwap();
    });
    for (const id of ["player_0", "player_1"]) {
      byId(id).addEventListener("change", () => {
        this.name();
        onPlayers();
      });
    }
    for (const id of ["level", "simulations", "seconds", "adviser", "hint_simulations", "hints", "throws", "scale"]) {
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

  get names() {
    return sides(this.model.sideNames);
  }

  /** Offers the players of the game. Those that were chosen stay, if they play it. */
  fillPlayers() {
    const fitting = this.models.filter((model) => model.game === this.model.game);
    const networks = () => fitting.map((model) => make("option", { value: model.name }, `Network ${model.name}`));
    const isFirst = byId("adviser").options.length === 0;
    const before = CHOSEN.map((id) => byId(id).value);
    for (const player of [0, 1]) {
      byId(`label_${player}`).textContent = upper(this.names[player]);
      fill(byId(`player_${player}`), [make("option", { value: "" }, "Person"), ...networks()]);
    }
    byId("player_1").value = this.model.name;
    const run = [...byId("adviser").options].filter((option) => option.value === RUN);
    fill(byId("adviser"), [...run, ...networks()]);
    this.fillLevels();
    if (!isFirst) this.take(before);
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

  /** Chooses the players and the adviser, those of them that are there. @param {string[]} chosen */
  take(chosen) {
    for (const [index, id] of CHOSEN.entries()) {
      const choices = [...byId(id).options].map((option) => option.value);
      if (choices.includes(chosen[index])) byId(id).value = chosen[index];
    }
    this.name();
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
    for (const player of [0, 1]) {
      byId(`name_${player}`).textContent = upper(this.names[player]);
      const [chosen] = byId(`player_${player}`).selectedOptions;
      const level = chosen?.value && this.level ? `, ${this.level}` : "";
      byId(`who_${player}`).textContent = `${chosen?.textContent ?? ""}${level}`;
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
      beside: "",
      players: [byId("player_0").value, byId("player_1").value],
      level: level === "" ? null : level,
      simulations: simulations ?? (seconds === null && level === "" ? this.model.simulations : null),
      seconds,
      hintSimulations: whole(byId("hint_simulations").value) ?? this.model.simulations,
      hints: byId("hints").checked,
      throws: byId("throws").value === "page",
    };
  }

  /** @returns {{isOn: boolean, minutes: number | null}} */
  get clock() {
    const chosen = byId("clock").value;
    return { isOn: chosen !== "", minutes: Number(chosen) || null };
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
