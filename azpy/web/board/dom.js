// How are elements made? Every text goes in as text, so no name of a move can be markup.

/**
 * @param {string} tag
 * @param {Record<string, unknown>} [properties] properties of the element; those with a dash and `role` are attributes
 * @param {...(Node | string | null)} children
 * @returns {any}
 */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes("-") || name === "role") {
      if (value !== null) element.setAttribute(name, String(value));
    } else {
      element[name] = value;
    }
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/**
 * An element of a drawing.
 * @param {string} tag
 * @param {Record<string, string | number>} attributes
 * @param {...(Node | string)} children
 * @returns {SVGElement}
 */
export function draw(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** @param {string} id @returns {any} the page's element of this id */
export function byId(id) {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`the page has no #${id}`);
  return element;
}

/** @type {Map<Element, (Node | string)[]>} children that wait for the end of a press */
const waiting = new Map();
for (const kind of ["pointerup", "pointercancel", "keyup"]) {
  document.addEventListener(kind, () => setTimeout(() => waiting.forEach((children, parent) => fill(parent, children))));
}

/**
 * Puts new children into an element. What had the focus keeps it, if there is an element with the same `data-key`. While
 * something in the element is pressed its children stay: a button that goes between press and release is not clicked.
 * @param {Element} parent
 * @param {(Node | string)[]} children
 */
export function fill(parent, children) {
  if (parent.matches(":active")) {
    waiting.set(parent, children);
    return;
  }
  waiting.delete(parent);
  const focused = document.activeElement;
  const key = focused !== null && parent.contains(focused) ? focused.getAttribute("data-key") : null;
  parent.replaceChildren(...children);
  if (key !== null) {
    for (const element of parent.querySelectorAll("[data-key]")) {
      if (element.getAttribute("data-key") === key) return element.focus({ preventScroll: true });
    }
  }
}

/** A value or a loss with its sign; a dash for none. @param {number | null} value @param {number} [digits] */
export function signed(value, digits = 2) {
  if (value === null) return "–";
  const text = Math.abs(value).toFixed(digits);
  return Number(text) === 0 ? text : (value < 0 ? "−" : "+") + text;
}

/** A picture that a server sent, as an address of an image: no script in it can run. @param {string} svg */
export function pictureAddress(svg) {
  return `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
}

/**
 * Says something to people who do not see the page.
 * @param {string} text
 */
export function announce(text) {
  byId("said").textContent = text;
}

/** Shows what went wrong; an empty text takes it away. @param {string} text */
export function complain(text) {
  byId("problem_text").textContent = text;
  byId("problem").hidden = text === "";
}
