// How does the board look from the other side? The page alone turns it: the server sends one picture.

import { boxOf } from "./position.js";

const DRAWN_ELSEWHERE = "defs, symbol, pattern, marker, clipPath, mask";

const known = new WeakMap();

/** A position as the other side sees it, by half a turn of the picture and of all places on it. Letters and pieces
 * stay upright. A picture that is no SVG stays as it is. */
export function turned(shown) {
  const found = known.get(shown) ?? turn(shown);
  known.set(shown, found);
  return found;
}

function turn(shown) {
  const [left, top, wide, high] = boxOf(shown.svg);
  const page = new DOMParser().parseFromString(shown.svg, "image/svg+xml");
  if (page.querySelector("parsererror") !== null) return shown;
  const root = page.documentElement;
  const group = () => page.createElementNS("http://www.w3.org/2000/svg", "g");
  for (const element of [...root.querySelectorAll("*")]) {
    const isLeaf = element.hasAttribute("transform") && element.childElementCount === 0;
    const isUpright = isLeaf || element.matches("text, image, use");
    if (!isUpright || element.closest(DRAWN_ELSEWHERE) !== null) continue;
    const upright = group();
    upright.style.cssText = "transform-box: fill-box; transform-origin: center; transform: rotate(180deg)";
    element.replaceWith(upright);
    upright.append(element);
  }
  const all = group();
  all.setAttribute("transform", `rotate(180 ${left + wide / 2} ${top + high / 2})`);
  all.append(...root.childNodes);
  root.append(all);
  const [right, bottom] = [2 * left + wide, 2 * top + high];
  const mirrored = ([place, x, y, width, height]) => [place, right - x - width, bottom - y - height, width, height];
  const actions = shown.actions.map((action) => ({ ...action, touches: action.touches.map(mirrored) }));
  const marks = shown.marks.map(([shape, text, places]) => [shape, text, places.map(mirrored)]);
  const places = shown.places.map(({ touch, man }) => ({ touch: mirrored(touch), man }));
  return { ...shown, places, svg: new XMLSerializer().serializeToString(root), marks, actions };
}
