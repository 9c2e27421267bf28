// What lies on the board, and what can be played there? The picture, what is drawn over it, and moves without a place.

import { Candidates } from "./candidates.js";
import { Choice } from "./choice.js";
import { announce, byId, keep, make, mark } from "./dom.js";
import { layersOf, Men } from "./men.js";
import { Overlay, showTints } from "./overlay.js";
import { Picture } from "./picture.js";
import { startingWith } from "./position.js";
import { store, stored, TAB } from "./storage.js";
import { turned } from "./turning.js";
import { lastTurn } from "./turns.js";

const TURNED = "azpy board turned";

export class Board {
  constructor(play, settings) {
    [this.play, this.settings] = [play, settings];
    this.isTurned = stored(TURNED, TAB) === true; // whether it is seen from the other side
    this.status = ""; // how the game stands, in words
    this.canPlay = false;
    this.takeMan = null; // gets the place of a man that is touched, in place of a move
    this.counted = null; // what the server says of the position with dead men, while they are touched
    this.crosses = []; // marks on them
    this.position = null; // the one on the board
    this.overlay = new Overlay();
    this.men = new Men();
    this.choice = new Choice(this);
    this.picture = new Picture(this.men, {
      onPlay: (actions) => {
        if (this.takeMan !== null) return this.takeMan(actions[0].name);
        return actions.length === 1 ? play.play(actions[0].name) : this.choice.ask(actions);
      },
      onChoose: () => {
        this.choice.close();
        this.drawOver();
      },
      onTurn: () => this.turn(),
    });
    this.candidates = new Candidates({
      onLook: () => this.drawOver(),
      picture: async (moves) => this.seen(await play.show([...play.game.current.moves(), ...moves])).svg,
    });
    new ResizeObserver(() => this.drawOver()).observe(byId("board"));
  }

  /** A position from the side that the board is seen from. */
  seen(shown) {
    return this.isSeenTurned ? turned(shown) : shown;
  }

  get isSeenTurned() {
    return this.isTurned && this.settings.model.canRotate;
  }

  /** The picture as it is seen. */
  get svg() {
    const { shown } = this.play.game.current;
    return shown === null ? "" : this.seen(shown).svg;
  }

  turn() {
    if (!this.settings.model.canRotate) return;
    this.isTurned = !this.isTurned;
    store(TURNED, this.isTurned, TAB);
    this.draw();
    this.candidates.preview();
    announce(this.isTurned ? "The board is turned." : "The board is turned back.");
  }

  show(canPlay, status) {
    [this.canPlay, this.status, this.takeMan, this.counted] = [canPlay, status, null, null];
    this.draw();
    this.showChoices();
  }

  /** Shows a board whose men can be touched, with crosses where they are dead. */
  showMen(counted, onTouch) {
    [this.counted, this.takeMan] = [counted, onTouch];
    this.draw();
  }

  /** Takes no touches until the next position is shown. */
  close() {
    for (const button of byId("choices").children) mark(button, "aria-disabled", "true");
    this.picture.close();
  }

  /** Shows the men of a picture, which may be one step away from the picture before. Gives the position as it is seen,
   * with the picture below its men. */
  lay(shown, isStep) {
    const [seen, { names }] = [(svg) => this.seen({ ...shown, svg }).svg, this.play];
    this.men.show(shown, names, seen, this.isSeenTurned, isStep);
    return { ...this.seen(shown), svg: seen(layersOf(shown, names).svg) };
  }

  draw() {
    const [{ current }, { counted }] = [this.play.game, this];
    if (current.shown === null) return;
    const isStep = this.position !== null && (current.parent === this.position || this.position.parent === current);
    this.position = current;
    const actions = counted?.men.map((touch) => ({ name: touch[0], short: touch[0], touches: [touch] }));
    const { places } = current.shown;
    const seen = this.lay(counted === null ? current.shown : { ...counted, actions, places }, isStep);
    const dead = seen.actions.filter(({ name }) => counted?.dead.includes(name));
    this.crosses = dead.map(({ touches }) => ["cross", "", touches]);
    this.picture.show(seen, counted !== null || this.canPlay, `The board. ${counted?.result ?? this.status}`);
    byId("turn").setAttribute("aria-pressed", `${this.isTurned}`);
    byId("turn").hidden = !this.settings.model.canRotate;
    document.querySelector(".play").classList.toggle("turned", this.isSeenTurned);
  }

  /** What has no place on the picture: passes, rolls. A button that cannot be pressed now stays, and so does its focus. */
  showChoices() {
    const { shown, outcome } = this.play.game.current;
    if (shown === null) return;
    const [actions, all] = outcome === null ? [shown.actions, shown.rolls] : [[], []];
    const rolls = this.settings.options.throws ? [] : all;
    const isNamed = ({ name, touches }) => touches.length === 0 || this.choice.named.includes(name);
    const textOf = ({ name, short, touches }) => (touches.length === 0 || short === name ? short : `${short} (${name})`);
    const chanceOf = ({ name, probability }) => `${name} (${(100 * probability).toFixed(1)}%)`;
    const choices = [
      ...actions.filter(isNamed).map((one) => ({ name: one.name, text: textOf(one), isOpen: this.canPlay })),
      ...rolls.map((one) => ({ name: one.name, text: chanceOf(one), isOpen: true })),
    ];
    const create = ({ name, text }) => {
      const play = ({ currentTarget }) => currentTarget.matches("[aria-disabled]") || this.play.play(name);
      return make("button", { type: "button", onclick: play }, text);
    };
    const update = (button, { isOpen }) => mark(button, "aria-disabled", isOpen ? null : "true");
    keep(byId("choices"), choices, ({ name, text }) => `${name} ${text}`, create, update);
  }

  drawOver() {
    const position = this.play.game.current;
    if (position.shown === null) return;
    const shown = this.seen(position.shown);
    const { candidates, picture, settings } = this;
    const { path, tile } = picture;
    const names = [...path, ...(tile?.laid.touches.map(([name]) => name) ?? [])];
    const chosen = position.shown.places.map(({ touch }) => touch).filter(([name]) => names.includes(name));
    const last = [...lastTurn(position, this.play.names.length)].reverse().flatMap(({ parent, move }) => {
      return parent.shown?.actions.find((action) => action.name === move)?.touches ?? [];
    });
    showTints(layersOf(position.shown, this.play.names), { last, chosen }, this.isSeenTurned);
    const { hints } = settings.options;
    const pv = hints ? (candidates.shown?.pv ?? null) : null;
    // Once a piece is chosen, its own candidates are left.
    const actions = path.length > 0 ? startingWith(shown.actions, path) : shown.actions;
    const moves = hints && position.outcome === null ? candidates.moves : [];
    const marks = [...shown.marks, ...this.crosses];
    this.overlay.show(picture.box, { marks, actions, moves, pv, players: this.play.names.length });
  }
}
