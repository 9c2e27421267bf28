// Which moves does the network consider, and how would the game go on? The table, and the line of one of its rows.

import { byId, fill, make, pictureAddress, signed } from "./dom.js";

const MOST = 10; // rows

/**
 * @typedef {Object} Watcher
 * @property {(move: any | null) => void} onLook a row of the table is looked at, or none
 * @property {(moves: string[]) => Promise<string>} picture of the position after these further moves
 */

export class Candidates {
  /** @param {Watcher} watcher */
  constructor(watcher) {
    this.watcher = watcher;
    this.rows = byId("candidates");
    this.line = byId("variation");
    this.preview = byId("preview");
    /** @type {any[]} */
    this.moves = [];
    /** @type {(name: string) => string} */
    this.label = (name) => name;
    /** @type {string | null} the move whose line stays in view */
    this.kept = null;
    /** @type {string | null} the move that the pointer or the focus is on */
    this.looked = null;
    /** @type {string} the line that is in view now */
    this.drawn = "";
    const over = (/** @type {any} */ event) => this.look(event.target.closest("tr"));
    this.rows.addEventListener("pointerover", over);
    this.rows.addEventListener("focusin", over);
    this.rows.addEventListener("pointerleave", () => this.look(null));
    this.rows.addEventListener("focusout", (event) => !this.rows.contains(event.relatedTarget) && this.look(null));
    this.rows.addEventListener("click", (event) => {
      const name = event.target.closest?.("tr")?.dataset.move;
      if (name === undefined) return;
      this.kept = this.kept === name ? null : name;
      this.draw();
    });
  }

  /** The move whose variation is in view. */
  get shown() {
    return this.moves.find((move) => move.move === (this.looked ?? this.kept)) ?? null;
  }

  /**
   * @param {any[]} moves best first
   * @param {(name: string) => string} label the short name of a move
   * @param {boolean} isNew whether the position is another one
   */
  show(moves, label, isNew) {
    if (isNew) this.kept = this.looked = null;
    [this.moves, this.label] = [moves, label];
    this.draw();
  }

  /** @param {HTMLElement | null} row */
  look(row) {
    const name = row?.dataset.move ?? null;
    if (name === this.looked) return;
    this.looked = name;
    this.drawLine();
    this.watcher.onLook(this.shown);
  }

  draw() {
    const total = this.moves.reduce((sum, move) => sum + move.visits, 0);
    fill(this.rows, this.moves.slice(0, MOST).map((move) => this.row(move, move.visits / Math.max(1, total))));
    byId("no_candidates").hidden = this.moves.length > 0;
    byId("analysis_table").hidden = this.moves.length === 0;
    this.drawLine();
    this.watcher.onLook(this.shown);
  }

  /** @param {any} move @param {number} share of the visits */
  row(move, share) {
    const percent = (/** @type {number} */ part) => `${Math.round(100 * part)}%`;
    const bar = (/** @type {string} */ kind, /** @type {number} */ part) => {
      const inner = make("span", { className: kind });
      inner.style.width = percent(part);
      return make("span", { className: "bar" }, inner);
    };
    const name = make(
      "button",
      { type: "button", className: "move", "data-key": move.move, "aria-pressed": this.kept === move.move },
      this.label(move.move),
    );
    const proof = move.proof === undefined ? null : `, proven in ${move.proof} plies`;
    const row = make(
      "tr",
      { title: `${move.move}: ${move.visits} visits, value ${signed(move.value, 3)}${proof ?? ""}` },
      make("td", { className: "number" }, `${move.order + 1}`),
      make("th", { scope: "row" }, name),
      make("td", { className: "number" }, `${move.visits}`),
      make("td", { className: "number" }, signed(move.value), proof && make("abbr", { title: "proven" }, " !")),
      make("td", { className: "number" }, percent(move.prior)),
      make("td", { className: "number" }, percent(share)),
      make("td", { className: "bars", "aria-hidden": "true" }, bar("policy", move.prior), bar("search", share)),
    );
    row.dataset.move = move.move;
    return row;
  }

  drawLine() {
    const move = this.shown ?? this.moves[0] ?? null;
    const text = move === null ? "" : `${move.order} ${move.pv.join("\n")}`;
    if (text === this.drawn) return;
    this.drawn = text;
    const title = move === null ? "Line" : `Line of ${this.label(move.move)}, number ${move.order + 1}`;
    byId("variation_title").textContent = title;
    this.preview.hidden = true;
    /** @type {(index: number) => Promise<void>} */
    const look = async (index) => {
      try {
        const svg = await this.watcher.picture(move.pv.slice(0, index + 1));
        if (this.drawn !== text) return;
        this.preview.src = pictureAddress(svg);
        this.preview.alt = `After ${move.pv.slice(0, index + 1).join(", ")}`;
        this.preview.hidden = false;
      } catch {
        this.preview.hidden = true; // the variation cannot be shown now; its names are
      }
    };
    fill(
      this.line,
      (move?.pv ?? []).map((/** @type {string} */ name, /** @type {number} */ index) => {
        const said = index === 0 ? this.label(name) : name;
        const button = make("button", { type: "button", className: "move", "data-key": `${index}` }, said);
        for (const kind of ["pointerenter", "focus", "click"]) button.addEventListener(kind, () => look(index));
        return make("li", {}, button);
      }),
    );
  }
}
