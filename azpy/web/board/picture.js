// What does the board look like, and what is touched on it? Places are buttons over the server's picture.

import { announce, byId, isForPage, make, mark, pictureAddress } from "./dom.js";
import { boxOf, nextPlaces, playedBy, startingWith } from "./position.js";
import { Tile } from "./tiles.js";

const FINGER = 20; // pixels: smaller places are easier to touch than they look

/** The picture of a position. `onPlay` gets the actions that were touched: several differ by their names alone.
 * `onChoose` is called when other places are chosen, `onTurn` when the board shall be seen from the other side. */
export class Picture {
  constructor(men, { onPlay, onChoose, onTurn }) {
    [this.men, this.onPlay, this.onChoose, this.onTurn] = [men, onPlay, onChoose, onTurn];
    this.places = [];
    this.frame = byId("board");
    this.image = byId("picture");
    this.layer = byId("places");
    this.box = [0, 0, 300, 150];
    this.actions = [];
    this.path = [];
    this.tile = null; // the piece that is chosen, where it covers several cells
    this.buttons = new Map();
    this.pressed = null; // where the pointer went down
    this.frame.addEventListener("pointerdown", (event) => this.down(event));
    this.frame.addEventListener("pointermove", (event) => this.drag(event));
    this.frame.addEventListener("pointerup", (event) => this.up(event));
    this.frame.addEventListener("pointercancel", () => this.drop());
    // A click of the pointer leaves the focus where it was, so that the arrow keys go on through the game.
    this.frame.addEventListener("mousedown", (event) => event.preventDefault());
    this.frame.addEventListener("keydown", (event) => this.key(event));
    document.addEventListener("keydown", (event) => isForPage(event) && event.key === "r" && this.turnTile());
  }

  show(shown, isPlayable, title) {
    this.box = boxOf(shown.svg);
    const address = pictureAddress(shown.svg);
    if (this.image.src !== address) this.image.src = address;
    this.image.alt = title;
    document.body.style.setProperty("--ratio", String(this.box[2] / this.box[3]));
    // As they are read: from the top, and from the left.
    this.places = [...shown.places].sort(({ touch: one }, { touch: other }) => one[2] - other[2] || one[1] - other[1]);
    this.actions = isPlayable ? shown.actions.filter((action) => action.touches.length > 0) : [];
    this.frame.classList.toggle("drags", this.actions.some((action) => action.touches.length > 1));
    this.reset();
  }

  /** Takes no touches until the next position is shown. */
  close() {
    this.actions = [];
    this.reset();
  }

  reset() {
    this.pressed = null;
    this.choose([]);
  }

  /** Chooses the places that were touched so far. */
  choose(path) {
    const hadFocus = this.frame.contains(document.activeElement);
    const begun = path.length === 1 ? startingWith(this.actions, path) : [];
    const isTile = begun.some(({ touches }) => touches.length > 2);
    if (`${path}` !== `${this.path}`) this.tile = isTile ? new Tile(begun) : null;
    this.path = path;
    const [first, next] = [nextPlaces(this.actions, []), this.next];
    const wanted = new Set(this.places.map(({ touch: [place] }) => place));
    for (const [place, button] of this.buttons) {
      if (wanted.has(place)) continue;
      button.remove();
      this.buttons.delete(place);
    }
    for (const [index, { touch, man }] of this.places.entries()) {
      const [place] = touch;
      const button = this.buttons.get(place) ?? this.add(place);
      if (this.layer.children[index] !== button) this.layer.insertBefore(button, this.layer.children[index]);
      const [actions, isChosen] = [next.get(place)?.actions, path.includes(place)];
      this.put(button, touch);
      button.className = isChosen ? "place chosen" : actions !== undefined && path.length > 0 ? "place next" : "place";
      mark(button, "aria-disabled", isChosen || next.has(place) || first.has(place) ? null : "true");
      const isLast = path.length > 0 && actions?.length === 1 && this.played(place).length === 1;
      const plays = isLast ? actions[0].short : place;
      const isNow = !isChosen ? "" : this.tile === null ? "chosen: cancel" : "chosen: turn";
      const said = [place, man || "empty", isNow].filter(Boolean).join(", ");
      button.setAttribute("aria-label", plays === place ? said : `${said}: ${plays}`);
    }
    this.rove(hadFocus);
    this.onChoose();
  }

  /** The places that can be touched next. */
  get next() {
    return this.tile?.next ?? nextPlaces(this.actions, this.path);
  }

  /** The actions that a touch of a place plays. */
  played(place) {
    return this.tile === null ? playedBy(this.actions, [...this.path, place]) : (this.next.get(place)?.actions ?? []);
  }

  /** Shades the chosen piece over a place. */
  lay(place) {
    const over = place === null ? undefined : this.tile?.next.get(place);
    if (this.tile === null || over === undefined || over.actions[0] === this.tile.laid) return;
    [this.tile.laid] = over.actions;
    this.onChoose();
  }

  turnTile() {
    if (this.tile === null) return;
    this.tile.turn(1);
    this.choose(this.path);
    announce(`Turned: ${this.tile.laid.short}`);
  }

  add(place) {
    const onclick = ({ detail }) => {
      if (detail !== 0) return;
      // A press of a key, or of a program that reads the page aloud, is a click without a pointer.
      this.touch(place);
      this.playOnly();
    };
    const onfocus = () => {
      this.hold(button);
      this.lay(place);
    };
    const button = make("button", { type: "button", tabIndex: -1, "data-place": place, onclick, onfocus });
    this.buttons.set(place, button);
    return button;
  }

  put(button, [, x, y, width, height]) {
    const [left, top, wide, high] = this.box;
    const shares = { left: (x - left) / wide, top: (y - top) / high, width: width / wide, height: height / high };
    for (const [side, share] of Object.entries(shares)) button.style[side] = `${100 * share}%`;
  }

  /** The centre of a place, in pixels of the page. */
  static centre(button) {
    const box = button.getBoundingClientRect();
    return [box.x + box.width / 2, box.y + box.height / 2];
  }

  /** Has Tab go to one place: the one that had the focus last, or one that can be touched. */
  rove(focus) {
    const buttons = [...this.buttons.values()];
    const held = buttons.find((one) => one.tabIndex === 0);
    const best = held ?? buttons.find((one) => !one.matches("[aria-disabled]")) ?? buttons[0];
    if (best !== undefined) this.hold(best);
    if (focus) (best ?? this.frame).focus({ preventScroll: true });
  }

  hold(button) {
    for (const other of this.buttons.values()) other.tabIndex = other === button ? 0 : -1;
  }

  /** Says what lies on the board: each kind of man with its places. */
  read() {
    const men = this.places.filter(({ man }) => man !== "");
    const parts = [...new Set(men.map(({ man }) => man))].sort().map((kind) => {
      return `${kind}: ${men.flatMap(({ touch, man }) => (man === kind ? [touch[0]] : [])).sort().join(", ")}`;
    });
    announce(`${this.image.alt} ${parts.length === 0 ? "Nothing lies on it" : parts.join("; ")}.`);
  }

  /** Whether another piece is chosen by a place. */
  isStart(place) {
    return place !== this.path[0] && nextPlaces(this.actions, []).has(place);
  }

  /** Touches a place: plays, goes on to the next place, or cancels. */
  touch(place) {
    if (!this.next.has(place)) {
      if (place === this.path[0] && this.tile !== null) return this.turnTile();
      const [isStart, before] = [this.isStart(place), this.path[0]];
      this.choose([]);
      if (!isStart) return announce(before === undefined ? "" : `${before} is no longer chosen`);
    }
    const played = this.played(place);
    if (played.length > 0) {
      this.choose([]);
      return this.onPlay(played);
    }
    this.choose([...this.path, place]);
    announce(`${place} is chosen. It can go to ${[...this.next.keys()].join(", ")}`);
  }

  /** Plays the only action that begins with the places that are chosen. */
  playOnly() {
    const [action, ...others] = this.path.length > 0 ? startingWith(this.actions, this.path) : [];
    if (action === undefined || others.some(({ name }) => name !== action.name)) return;
    this.choose([]);
    this.onPlay([action]);
  }

  /** The place under a pointer that can be touched. */
  at({ clientX, clientY }) {
    let [best, least] = [null, Infinity];
    for (const [place, button] of this.buttons) {
      if (button.matches("[aria-disabled]")) continue;
      const { width, height } = button.getBoundingClientRect();
      const [x, y] = Picture.centre(button);
      const [u, v] = [2 * Math.abs(clientX - x), 2 * Math.abs(clientY - y)];
      // A place goes before what is only added to another for a finger.
      const size = width * height + (u <= width && v <= height ? 0 : innerWidth * innerHeight);
      const isIn = u <= Math.max(width, FINGER) && v <= Math.max(height, FINGER);
      if (isIn && size < least) [best, least] = [place, size];
    }
    return best;
  }

  down(event) {
    if (event.button !== 0 || this.actions.length === 0) return;
    const place = this.at(event);
    this.frame.setPointerCapture(event.pointerId); // a drag may end outside of the board
    this.pressed = { place, isNew: false };
    this.lay(place);
    if (place === null || this.next.has(place) && this.path.length > 0) return;
    if (this.isStart(place) && playedBy(this.actions, [place]).length === 0) {
      this.choose([]);
      this.touch(place);
      this.pressed.isNew = true;
    }
  }

  /** Has the man of the first place follow the pointer, or the piece that is laid. */
  drag(event) {
    if (this.tile !== null) this.lay(this.at(event));
    else if (this.pressed !== null && this.path.length === 1) this.men.lift(this.path[0], event);
  }

  drop() {
    this.pressed = null;
    this.men.drop();
  }

  up(event) {
    const pressed = this.pressed;
    this.pressed = null;
    if (pressed === null) return;
    const place = this.at(event);
    // A man that was dragged to where it is played stays there.
    if (place === null || this.played(place).length !== 1) this.men.drop();
    if (place !== null && this.next.has(place)) {
      if (place === pressed.place || this.path.length > 0) this.touch(place);
    } else if (!(pressed.isNew && place === pressed.place) && this.path.length > 0) {
      if (place !== null && place === pressed.place) this.touch(place);
      else this.choose([]);
    }
    if (place !== null && place === this.path.at(-1)) this.playOnly();
  }

  key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "Escape") return this.choose([]);
    if (event.key.toLowerCase() === "t") return this.onTurn();
    if (event.key.toLowerCase() === "b") return this.read();
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (way === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    this.nearest(way)?.focus();
  }

  /** The nearest place that way from the one with the focus. */
  nearest([right, down]) {
    const from = document.activeElement;
    const buttons = [...this.buttons.values()];
    if (!(from instanceof HTMLButtonElement)) return buttons.find((one) => one.tabIndex === 0) ?? null;
    const [x, y] = Picture.centre(from);
    let [best, least] = [null, Infinity];
    for (const button of buttons) {
      const [u, v] = Picture.centre(button);
      const along = (u - x) * right + (v - y) * down;
      const far = along + 3 * Math.abs((u - x) * down + (v - y) * right);
      if (along > 1 && far < least) [best, least] = [button, far];
    }
    return best;
  }
}
