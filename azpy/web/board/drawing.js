// What does a person draw on the board? Arrows and circles by the right button: they go with the position.

import { byId } from "./dom.js";

export class Drawing {
  /** `position` is what the marks belong to, `touches` are its places, and `box` is that of the picture. */
  constructor({ position, box, touches, onDraw }) {
    [this.position, this.box, this.touches, this.onDraw] = [position, box, touches, onDraw];
    this.frame = byId("board");
    this.drawn = new WeakMap();
    this.from = null; // where the right button went down
    this.frame.addEventListener("contextmenu", (event) => event.preventDefault());
    this.frame.addEventListener("pointerdown", (event) => {
      if (event.button === 2) this.from = this.at(event);
      else if (this.marks.length > 0) this.put([]);
    });
    this.frame.addEventListener("pointerup", (event) => {
      const [from, to] = [this.from, this.at(event)];
      if (event.button !== 2 || from === null || to === null) return;
      this.from = null;
      const mark = `${from}` === `${to}` ? ["circle", "", [from]] : ["arrow", "", [from, to]];
      const others = this.marks.filter((one) => `${one}` !== `${mark}`);
      this.put(others.length < this.marks.length ? others : [...others, mark]);
    });
  }

  get marks() {
    return this.drawn.get(this.position()) ?? [];
  }

  put(marks) {
    this.drawn.set(this.position(), marks);
    this.onDraw();
  }

  /** Forgets all: places stand elsewhere now. */
  clear() {
    this.drawn = new WeakMap();
  }

  at(event) {
    const frame = this.frame.getBoundingClientRect();
    const [left, top, wide] = this.box();
    const scale = wide / frame.width;
    const [x, y] = [left + (event.clientX - frame.x) * scale, top + (event.clientY - frame.y) * scale];
    return this.touches().find(([, u, v, width, height]) => x >= u && x < u + width && y >= v && y < v + height) ?? null;
  }
}
