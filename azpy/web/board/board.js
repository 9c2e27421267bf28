// What lies on the board, and what can be played there? The picture, what is drawn over it, and moves without a place.

import { Candidates } from "./candidates.js";
import { Choice } from "./choice.js";
import { announce, byId, keep, make, mark } from "./dom.js";
import { Drawing } from "./drawing.js";
import { layersOf, Men } from "./men.js";
import { Overlay } from "./overlay.js";
import { Picture } from "./picture.js";
import { startingWith } from "./position.js";
import { store, stored, TAB } from "./storage.js";
import { turned } from "./turning.js";
import { showTints } from "./tints.js";
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
    this.crosses = []; // marks on men that are dead
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
    this.drawing = new Drawing({
      position: () => play.game.current,
      box: () => this.picture.box,
      touches: () => {
        const { shown } = play.game.current;
        return shown === null ? [] : this.seen(shown).places.map(({ touch }) => touch);
      },
      onDraw: () => this.drawOver(),
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

  turnTo(isTurned) {
    if (isTurned !== this.isTurned) this.turn();
  }

  turn() {
    if (!this.settings.model.canRotate) return;
    this.isTurned = !this.isTurned;
    store(TURNED, this.isTurned, TAB);
    this.drawing.clear();
    this.draw();
    this.candidates.lookAgain();
    announce(this.isTurned ? "The board is turned." : "The board is turned back.");
  }

  show(position, canPlay, status) {
    [this.canPlay, this.status, this.takeMan, this.crosses] = [canPlay, status, null, []];
    this.draw();
    this.showChoices(position);
  }

  /** Shows a board whose men can be touched, with crosses where they are dead. */
  showMen(counted, onTouch) {
    [this.counted, this.takeMan] = [counted, onTouch];
    this.drawMen();
  }

  drawMen() {
    const { counted } = this;
    const actions = counted.men.map((touch) => ({ name: touch[0], short: touch[0], touches: [touch] }));
    const { shown } = this.play.game.current;
    const seen = this.lay({ ...counted, actions, places: shown?.places ?? [] }, false);
    const dead = seen.actions.filter(({ name }) => counted.dead.includes(name));
    this.crosses = dead.map(({ touches }) => ["cross", "", touches]);
    this.picture.show(seen, true, `The board. ${counted.result}`);
    this.drawOver();
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
    const { current } = this.play.game;
    const { shown } = current;
    if (shown === null) return;
    const { canRotate } = this.settings.model;
    const isStep = this.position !== null && (current.parent === this.position || this.position.parent === current);
    this.position = current;
    const seen = this.lay(shown, isStep);
    if (this.takeMan === null) this.picture.show(seen, this.canPlay, `The board. ${this.status}`);
    else this.drawMen();
    byId("turn").setAttribute("aria-pressed", `${this.isTurned}`);
    byId("turn").hidden = !canRotate;
    document.querySelector(".play")?.classList.toggle("turned", this.isTurned && canRotate);
  }

  /** What has no place on the picture: passes, rolls. A button that cannot be pressed now stays, and so does its focus. */
  showChoices(position) {
    const shown = position.shown;
    const actions = position.outcome === null ? (shown?.actions ?? []) : [];
    const untouched = actions.filter(({ name, touches }) => touches.length === 0 || this.choice.named.includes(name));
    const rolls = this.settings.options.throws || position.outcome !== null ? [] : (shown?.rolls ?? []);
    const textOf = ({ name, short, touches }) => (touches.length === 0 || short === name ? short : `${short} (${name})`);
    const chanceOf = ({ name, probability }) => `${name} (${(100 * probability).toFixed(1)}%)`;
    keep(
      byId("choices"),
      [
        ...untouched.map((action) => ({ name: action.name, text: textOf(action), isOpen: this.canPlay })),
        ...rolls.map((roll) => ({ name: roll.name, text: chanceOf(roll), isOpen: true })),
      ],
      ({ name, text }) => `${name} ${text}`,
      ({ name, text }) => {
        const button = make("button", { type: "button" }, text);
        button.addEventListener("click", () => {
          if (button.getAttribute("aria-disabled") === null) this.play.play(name);
        });
        return button;
      },
      (button, { isOpen }) => mark(button, "aria-disabled", isOpen ? null : "true"),
    );
  }

  /** The places of the last turn, as the server says them. */
  touchesOf(position) {
    return [...lastTurn(position, this.play.names.length)].reverse().flatMap(({ parent, move }) => {
      return parent?.shown?.actions.find((action) => action.name === move)?.touches ?? [];
    });
  }

  drawOver() {
    const position = this.play.game.current;
    if (position.shown === null) return;
    const shown = this.seen(position.shown);
    const { candidates, picture, settings } = this;
    const { path, tile } = picture;
    const names = [...path, ...(tile?.laid.touches.map(([name]) => name) ?? [])];
    const chosen = position.shown.places.map(({ touch }) => touch).filter(([name]) => names.includes(name));
    const layers = layersOf(position.shown, this.play.names);
    showTints(layers, { last: this.touchesOf(position), chosen }, this.isSeenTurned);
    const { hints } = settings.options;
    const pv = hints ? (candidates.shown?.pv ?? null) : null;
    // Once a piece is chosen, its own candidates are left.
    const actions = path.length > 0 ? startingWith(shown.actions, path) : shown.actions;
    const moves = hints && position.outcome === null ? candidates.moves : [];
    const marks = [...shown.marks, ...this.drawing.marks, ...this.crosses];
    this.overlay.show(picture.box, { marks, actions, moves, pv, players: this.play.names.length });
  }
}
