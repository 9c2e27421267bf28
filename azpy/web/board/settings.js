// What did the person choose? The controls of players, levels and hints; they are kept in this browser.

import { byId, fill, make } from "./dom.js";
import { sides, upper } from "./sides.js";

const KEPT = ["simulations", "seconds", "clock", "throws", "hint_simulations"];
const STORE = "azpy board settings";

/** @typedef {{name: string, game: string, internalName: string, simulations: number,
 *   format: string | null, sideNames: [string, string] | null, canRotate: boolean}} Model */

export class Settings {
  /** @param {{onModel: () => void, onPlay: () => void, onClock: () => void}} heard what changed */
  constructor({ onModel, onPlay, onClock }) {
    /** @type {Model[]} */
    this.models = [];
    byId("model").addEventListener("change", () => {
      this.fillPlayers();
      onModel();
    });
    for (const id of ["player_0", "player_1", "simulations", "seconds", "hint_simulations", "hints", "throws"]) {
      byId(id).addEventListener("change", () => {
        this.keep();
        this.name();
        onPlay();
      });
    }
    byId("clock").addEventListener("change", () => {
      this.keep();
      onClock();
    });
    const kept = stored(STORE) ?? {};
    this.wasKept = typeof kept.simulations === "string";
    for (const id of KEPT) if (typeof kept[id] === "string") byId(id).value = kept[id];
  }

  /**
   * @param {Model[]} models what the server has; the first one is chosen, unless another was
   * @returns {boolean} whether the same one is chosen
   */
  offer(models) {
    const isFirst = this.models.length === 0;
    const before = isFirst ? null : this.model;
    this.models = models;
    const text = (/** @type {Model} */ model) => `${model.name}: ${model.game}`;
    fill(byId("model"), models.map((model) => make("option", { value: model.name }, text(model))));
    const isThere = models.some((model) => model.name === before?.name && model.game === before?.game);
    if (isThere) byId("model").value = before?.name;
    for (const id of isFirst ? ["simulations", "hint_simulations"] : []) {
      if (!this.wasKept && byId(id).value === "") byId(id).value = `${this.model.simulations}`;
    }
    if (!isThere) this.fillPlayers();
    return isThere;
  }

  /** The network that advises. @returns {Model} */
  get model() {
    return this.models.find((model) => model.name === byId("model").value) ?? this.models[0];
  }

  get names() {
    return sides(this.model.sideNames);
  }

  fillPlayers() {
    const fitting = this.models.filter((model) => model.game === this.model.game);
    for (const player of [0, 1]) {
      byId(`label_${player}`).textContent = upper(this.names[player]);
      const networks = fitting.map((model) => make("option", { value: model.name }, `Network ${model.name}`));
      fill(byId(`player_${player}`), [make("option", { value: "" }, "Person"), ...networks]);
    }
    byId("player_1").value = this.model.name;
    this.name();
  }

  /**
   * Chooses a player and who plays, as before.
   * @param {string} name of the player
   * @param {string} game that it played
   * @param {string[]} players
   * @returns {boolean} whether the server has this player
   */
  take(name, game, players) {
    if (!this.models.some((model) => model.name === name && model.game === game)) return false;
    byId("model").value = name;
    this.fillPlayers();
    for (const player of [0, 1]) {
      const choices = [...byId(`player_${player}`).options].map((option) => option.value);
      if (choices.includes(players[player])) byId(`player_${player}`).value = players[player];
    }
    this.name();
    return true;
  }

  /** Says who plays, beside the board. */
  name() {
    for (const player of [0, 1]) {
      byId(`name_${player}`).textContent = upper(this.names[player]);
      byId(`who_${player}`).textContent = byId(`player_${player}`).selectedOptions[0]?.textContent ?? "";
    }
  }

  /** @returns {import("./play.js").Options} */
  get options() {
    const seconds = above(byId("seconds").value, 0.001);
    const simulations = whole(byId("simulations").value);
    return {
      model: this.model.name,
      players: [byId("player_0").value, byId("player_1").value],
      simulations: simulations ?? (seconds === null ? this.model.simulations : null),
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

/**
 * Keeps an object in this browser, where the browser allows it: for this tab, and for tabs that are opened later.
 * @param {string} key
 * @param {unknown} value
 */
export function store(key, value) {
  try {
    for (const kept of [sessionStorage, localStorage]) kept.setItem(key, JSON.stringify(value));
  } catch {
    // The page works without.
  }
}

/** @param {string} key @returns {any} what was kept; null for nothing */
export function stored(key) {
  try {
    return JSON.parse(sessionStorage.getItem(key) ?? localStorage.getItem(key) ?? "null");
  } catch {
    return null;
  }
}

/** Keeps an object for this tab, where the browser allows it. @param {string} key @param {unknown} value */
export function keepForSession(key, value) {
  try {
    sessionStorage.setItem(key, JSON.stringify(value));
  } catch {
    // The page works without.
  }
}

/** @param {string} key @returns {any} what was kept for this tab; null for nothing */
export function sessionOf(key) {
  try {
    return JSON.parse(sessionStorage.getItem(key) ?? "null");
  } catch {
    return null;
  }
}
