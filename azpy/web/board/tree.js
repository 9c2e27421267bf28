// What does the search's tree look like? Branches with their lines; each unfolds into those behind it.

import { keep, byId, make, messageOf, write } from "./dom.js";
import { told } from "./values.js";

const MOST = 12; // branches of a position
const DEEPEST = 8; // moves of a line

export class Tree {
  /** @param {(line: string[]) => Promise<any>} search has the position after a line searched, and gives the answer */
  constructor(search) {
    this.search = search;
  }

  /** @param {number} position its number @param {any[]} moves what a search says, best first @param {(name: string) =>
   * string} label the short name of a move */
  show(position, moves, label) {
    this.list(byId("tree"), moves, `${position}`, [], label);
  }

  /** @param {Element} list @param {any[]} moves best first @param {string} key of the position @param {string[]} line
   * that leads there @param {(name: string) => string} [label] the short name of a move that does not tell it */
  list(list, moves, key, line, label = (name) => name) {
    keep(
      list,
      moves.slice(0, MOST),
      ({ move }) => `${key} ${move}`,
      ({ move }) => this.branch([...line, move]),
      (item, { move, pvShort, pv, visits, value }) => {
        const said = pvShort ?? pv.map(label);
        const [name, figures, then] = item.querySelector("summary").children;
        write(name, said[0] ?? label(move));
        write(figures, ` ${visits} visits, ${told(value)}`);
        write(then, said.length > 1 ? ` then ${said.slice(1, DEEPEST).join(" ")}` : "");
      },
    );
  }

  /** A branch, which is searched once it is unfolded. @param {string[]} line */
  branch(line) {
    const inner = make("ul");
    const title = make("summary", {}, make("b"), make("span"), make("span", { className: "then" }));
    const branch = make("details", {}, title, inner);
    branch.addEventListener("toggle", async () => {
      if (!branch.open || inner.childElementCount > 0) return;
      inner.replaceChildren(make("li", {}, "Searching …"));
      try {
        const { moveInfos } = await this.search(line);
        inner.replaceChildren(...(moveInfos.length === 0 ? [make("li", {}, "The game is over.")] : []));
        if (moveInfos.length > 0) this.list(inner, moveInfos, "", line);
      } catch (error) {
        inner.replaceChildren(make("li", {}, messageOf(error)));
      }
    });
    return make("li", {}, branch);
  }
}
