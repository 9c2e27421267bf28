// Which of several moves with the same touches is meant? Their men are shown on the board, or else their names.

import { announce, byId, complain, fill, make, pictureAddress } from "./dom.js";
import { layersOf, within } from "./men.js";

const ORDER = "qnrb"; // of men of chess

export class Choice {
  constructor(board) {
    this.board = board;
    this.layer = byId("pieces");
    this.named = []; // the moves that are chosen by their names, beside the board
    this.serial = 0; // of the question
    this.layer.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key === "Escape") this.close();
    });
    for (const kind of ["pointerdown", "pointerup"]) {
      this.layer.addEventListener(kind, (event) => event.stopPropagation());
    }
    this.layer.addEventListener("click", (event) => event.target === this.layer && this.close());
  }

  /** Asks which of these actions is meant, whose touches are the same. */
  async ask(actions) {
    const serial = ++this.serial;
    try {
      const men = await Promise.all(actions.map(async (action) => ({ action, man: await this.manOf(action) })));
      if (serial !== this.serial) return;
      announce(`Which move? ${actions.map(({ short }) => short).join(", ")}`);
      const known = new Set(men.map(({ man }) => man));
      if (known.size === men.length && !known.has("")) return this.show(men);
      this.named = actions.map(({ name }) => name);
      this.board.showChoices();
      byId("choices").children[0]?.focus();
    } catch (error) {
      complain(`The moves cannot be shown: ${error.message}`);
    }
  }

  /** The man that stands on the last place after a move, as a picture; empty for none. */
  async manOf({ name }) {
    const { play } = this.board;
    const { current } = play.game;
    const touch = current.shown.actions.find((one) => one.name === name).touches.at(-1); // as the board is not turned
    const { svg, men } = layersOf(await play.show([...current.moves(), name]), play.names);
    const man = men.find(within(touch));
    if (man === undefined) return "";
    const head = /<svg\b[^>]*>/.exec(svg)?.[0] ?? "";
    const bare = head.replace(/ (width|height|viewBox)="[^"]*"/g, "");
    return `${bare.replace(">", ` viewBox="${touch.slice(1).join(" ")}">`)}${man.parts}</svg>`;
  }

  show(men) {
    const { box } = this.board.picture;
    const rank = ({ man }) => ORDER.indexOf(/class="(\w)"/.exec(man)?.[1] ?? "");
    const [, x, y, width, height] = men[0].action.touches.at(-1);
    const way = y + height / 2 < box[1] + box[3] / 2 ? 1 : -1; // to the middle of the board
    const buttons = [...men].sort((one, other) => rank(one) - rank(other)).map(({ action, man }, index) => {
      const image = make("img", { alt: "", src: pictureAddress(man) });
      const button = make("button", { type: "button", title: action.short, "aria-label": action.short }, image);
      button.onclick = () => this.board.play.play(action.name);
      this.board.picture.put(button, ["", x, y + way * index * height, width, height]);
      return button;
    });
    fill(this.layer, buttons);
    this.layer.hidden = false;
    buttons[0].focus({ preventScroll: true });
  }

  close() {
    this.serial += 1;
    this.layer.hidden = true;
    if (this.named.length === 0) return;
    this.named = [];
    this.board.showChoices();
  }
}
