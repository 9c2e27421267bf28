// What does the search's tree look like? The principal variations as an outline that grows with the search.

import { byId, fill, make } from "./dom.js";
import { told } from "./values.js";

const MOST = 12; // variations
const DEEPEST = 8;

/** @typedef {{said: string, visits: number, value: number | null, next: Map<string, Branch>}} Branch */

/** @param {any[]} moves what a search says, best first @param {(name: string) => string} label */
export function showTree(moves, label) {
  /** @type {Map<string, Branch>} */
  const first = new Map();
  for (const move of moves.slice(0, MOST)) {
    let next = first;
    for (const [index, name] of move.pv.slice(0, DEEPEST).entries()) {
      const said = move.pvShort?.[index] ?? label(name);
      const known = next.get(name) ?? { said, visits: 0, value: null, next: new Map() };
      if (index === 0) Object.assign(known, { visits: move.visits, value: move.value });
      next.set(name, known);
      next = known.next;
    }
  }
  fill(byId("tree"), list(first));
}

/** @param {Map<string, Branch>} branches @returns {HTMLElement[]} */
function list(branches) {
  return [...branches.values()].map((branch) => {
    const item = make("li", {}, make("b", {}, branch.said));
    if (branch.value !== null) item.append(` ${branch.visits} visits, ${told(branch.value)}`);
    let [inner, said] = [branch.next, /** @type {string[]} */ ([])];
    // A line without branches stays on one row.
    while (inner.size === 1) {
      const [only] = inner.values();
      said.push(only.said);
      inner = only.next;
    }
    if (said.length > 0) item.append(make("span", { className: "then" }, ` then ${said.join(" ")}`));
    if (inner.size > 0) item.append(make("ul", {}, ...list(inner)));
    return item;
  });
}
