// How are elements made? Every text goes in as text, so no name of a move can be markup.

/** Makes an element with these properties; those with a dash, and `role`, are attributes. */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes("-") || name === "role") element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children);
  return element;
}

export function draw(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

export function byId(id) {
  return document.getElementById(id);
}

export function onClick(id, act) {
  byId(id).addEventListener("click", () => act());
}

/** Whether a key is for the board: pressed by itself, and where nothing is typed. */
export function isForPage({ altKey, ctrlKey, metaKey, target }) {
  const isTyped = target instanceof Element && target.closest("input, select, textarea, dialog") !== null;
  return !altKey && !ctrlKey && !metaKey && !isTyped && !byId("main").hidden;
}

/** Shows or hides a field and its label. */
export function show(id, isShown) {
  for (const one of document.querySelectorAll(`#${id}, [for="${id}"]`)) one.toggleAttribute("hidden", !isShown);
}

/** Offers choices in a list, each a value and its text. What was chosen stays, if it is there. */
export function offer(id, choices, isShown = true) {
  const [field, before] = [byId(id), byId(id).value];
  field.replaceChildren(...choices.map(([value, text]) => make("option", { value }, text)));
  if (choices.some(([value]) => value === before)) field.value = before;
  show(id, isShown);
}

const waiting = new Map(); // changes of children that wait for the end of a press
for (const kind of ["pointerup", "pointercancel", "keyup"]) {
  document.addEventListener(kind, () => setTimeout(() => waiting.forEach((change) => change())));
}

/** Changes the children of an element. While something in the element is pressed its children stay: a button that
 * goes between press and release is not clicked. */
function whenReleased(parent, change) {
  waiting.delete(parent);
  if (parent.matches(":active")) waiting.set(parent, () => whenReleased(parent, change));
  else change();
}

export function fill(parent, children) {
  whenReleased(parent, () => parent.replaceChildren(...children));
}

const kept = new WeakMap(); // the children that `keep` made, by their keys

/** Shows items as the children of an element. `keyOf` differs from item to item, `create` makes the child of an item,
 * and `update` puts into it what may change. A child stays the same element as long as its key is there, and the one
 * with the focus stays where it is: a program that reads the page aloud would say it again. If the child with the focus
 * goes, the focus goes to the child in its place, or to the element if no child is left. */
export function keep(parent, items, keyOf, create, update = () => {}) {
  whenReleased(parent, () => {
    const known = kept.get(parent) ?? new Map();
    const made = new Map(items.map((item) => [keyOf(item), known.get(keyOf(item)) ?? create(item)]));
    const wanted = [...made.values()];
    const before = [...parent.children];
    const focused = before.findIndex((child) => child.contains(document.activeElement));
    const isGone = focused >= 0 && !wanted.includes(before[focused]);
    kept.set(parent, made);
    for (const child of before) if (!wanted.includes(child)) child.remove();
    // The others move around the one with the focus, which an element that moves would lose.
    const fixed = wanted.indexOf(before[focused]);
    for (const [at, child] of wanted.entries()) {
      const there = at <= fixed || at === 0 ? (parent.children[at] ?? null) : wanted[at - 1].nextSibling;
      if (at !== fixed && child !== there) parent.insertBefore(child, there);
    }
    items.forEach((item, index) => update(wanted[index], item));
    if (!isGone) return;
    const instead = wanted[Math.min(focused, wanted.length - 1)] ?? parent;
    const button = instead.matches("button") ? instead : instead.querySelector("button");
    (button ?? instead).focus({ preventScroll: true });
  });
}

/** Puts a text into an element, unless the text is there. */
export function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Gives an attribute of an element a value, unless it has this value; null takes the attribute away. */
export function mark(element, name, value) {
  if (value === element.getAttribute(name)) return;
  if (value === null) element.removeAttribute(name);
  else element.setAttribute(name, value);
}

/** A picture that a server sent, as an address of an image: no script in it can run. */
export function pictureAddress(svg) {
  return `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
}

/** Says something to people who do not see the page. */
export function announce(text) {
  byId("said").textContent = text;
}

/** Shows what went wrong; an empty text takes it away. */
export function complain(text) {
  byId("problem_text").textContent = text;
  byId("problem").hidden = text === "";
}
