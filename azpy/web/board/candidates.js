// Which moves does the network consider, and how would the game go on? The table, and the line of one of its rows.

import { byId, keep, make, mark, pictureAddress, write } from "./dom.js";
import { told } from "./values.js";

const MOST = 10; // rows

export class Candidates {
  /** `onLook` is called when another row of the table is looked at, `picture` gives the picture after further moves. */
  constructor({ onLook, picture }) {
    [this.onLook, this.pictureOf] = [onLook, picture];
    this.rows = byId("candidates");
    this.line = byId("variation");
    this.picture = byId("preview");
    this.moves = [];
    this.label = (name) => name;
    this.kept = null; // the move whose line stays in view
    this.looked = null; // the move that the pointer or the focus is on
    this.pv = []; // the line that is in view now
    this.said = []; // its moves as people write them in short
    this.previewed = []; // the moves before the position in the small picture; none if there is no picture
    const over = (event) => this.look(event.target.closest("tr"));
    this.rows.addEventListener("pointermove", over); // not where the page moves below the pointer
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

  /** Shows moves, the best first; `label` gives their short names. */
  show(moves, label, isNew) {
    if (isNew) {
      this.kept = this.looked = null;
      this.previewed = [];
      this.picture.hidden = true;
    }
    [this.moves, this.label] = [moves, label];
    this.draw();
    // A row that has the focus in this position, too, gets no event that says so.
    if (isNew && this.rows.contains(document.activeElement)) this.look(document.activeElement.closest("tr"));
  }

  look(row) {
    const name = row?.dataset.move ?? null;
    if (name === this.looked) return;
    this.looked = name;
    this.drawLine();
    this.onLook();
  }

  draw() {
    const total = this.moves.reduce((sum, move) => sum + move.visits, 0);
    // The best ones, and the one whose row has the focus.
    const focused = this.rows.contains(document.activeElement) ? document.activeElement.closest("tr") : null;
    const listed = this.moves.filter(({ move }, index) => index < MOST || move === focused?.dataset.move);
    const keyOf = ({ move }) => `${move} ${this.label(move)}`;
    const update = (row, move) => this.update(row, move, move.visits / Math.max(1, total));
    keep(this.rows, listed, keyOf, ({ move }) => this.row(move), update);
    byId("no_candidates").hidden = this.moves.length > 0;
    byId("analysis_table").hidden = this.moves.length === 0;
    this.drawLine();
    this.onLook();
  }

  /** The row of a move, without the figures of its cells. */
  row(name) {
    const cell = () => make("td", { className: "number" });
    const bar = (kind) => make("span", { className: "bar" }, make("span", { className: kind }));
    const button = make("button", { type: "button", className: "move" }, this.label(name));
    const value = make("td", { className: "number" }, make("span"), make("abbr", { title: "proven" }, " !"));
    const cells = [cell(), make("th", { scope: "row" }, button), cell(), value, cell(), cell()];
    const bars = make("td", { className: "bars", "aria-hidden": "true" }, bar("policy"), bar("search"));
    return make("tr", { "data-move": name }, ...cells, bars);
  }

  update(row, move, share) {
    const percent = (part) => `${Math.round(100 * part)}%`;
    const [order, name, visits, value, prior, searched, bars] = row.cells;
    const isProven = move.proof !== undefined;
    const proof = isProven ? `, proven in ${move.proof} plies` : "";
    const each = move.values ?? [move.value]; // for the player to move, or for each player
    const said = each.map((one) => told(one, 3)).join(", ");
    mark(row, "title", `${this.label(move.move)}: ${move.visits} visits, value ${said}${proof}`);
    mark(name.children[0], "aria-pressed", `${this.kept === move.move}`);
    write(order, `${move.order + 1}`);
    write(visits, `${move.visits}`);
    write(value.children[0], told(move.value));
    value.children[1].hidden = !isProven;
    write(prior, percent(move.prior));
    write(searched, percent(share));
    const [policy, search] = bars.children;
    policy.firstChild.style.width = percent(move.prior);
    search.firstChild.style.width = percent(share);
  }

  drawLine() {
    const move = this.shown ?? this.moves[0] ?? null;
    const title = move === null ? "Line" : `Line of ${this.label(move.move)}, number ${move.order + 1}`;
    write(byId("variation_title"), title);
    this.pv = move?.pv ?? [];
    this.said = move?.pvShort ?? this.pv.map(this.label);
    const steps = this.said.map((said, index) => ({ said, index }));
    keep(this.line, steps, ({ said, index }) => `${index} ${said}`, ({ said, index }) => {
      const look = () => this.preview(index);
      const on = { onpointerenter: look, onfocus: look, onclick: look };
      return make("li", {}, make("button", { type: "button", className: "move", ...on }, said));
    });
    if (this.previewed.every((name, index) => this.pv[index] === name)) return;
    this.picture.hidden = true;
    const at = this.previewed.length - 1;
    this.previewed = [];
    if (this.line.contains(document.activeElement)) this.preview(Math.min(at, this.pv.length - 1));
  }

  /** Shows the position after a move of the line; without one the small picture is made again, if there is one. */
  async preview(index = this.previewed.length - 1) {
    if (index < 0) return;
    const moves = this.pv.slice(0, index + 1);
    this.previewed = moves;
    const svg = await this.pictureOf(moves).catch(() => null); // the names of the moves are there
    if (this.previewed !== moves) return;
    this.picture.hidden = svg === null;
    this.picture.src = pictureAddress(svg ?? "");
    this.picture.alt = `After ${this.said.slice(0, index + 1).join(", ")}`;
  }
}
