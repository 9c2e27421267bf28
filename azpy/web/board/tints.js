// Where was the last turn played, and what is chosen? The places are tinted by their own shapes, below the men.

import { byId, draw } from "./dom.js";
import { within } from "./men.js";

/** Tints places of the picture; `tinted` has them by the class of their tint. */
export function showTints(layers, tinted, isTurned) {
  const [left, top, wide, high] = layers.box;
  const half = isTurned ? { transform: `rotate(180 ${left + wide / 2} ${top + high / 2})` } : {};
  const tints = Object.entries(tinted).flatMap(([look, touches]) => touches.map((touch) => shapeOf(layers, touch, look)));
  for (const id of ["tints", "dots"]) {
    byId(id).setAttribute("viewBox", layers.box.join(" "));
    byId(id).replaceChildren(draw("g", half, ...tints.filter((one) => one.matches(".dot") === (id === "dots"))));
  }
}

/** The shape of a place; of a place that is not drawn, a dot on its man. */
function shapeOf({ shapes, men, box }, touch, look) {
  const [, x, y, width, height] = touch;
  const isGround = (one) => {
    const [across, down] = [one.wide / width, one.high / height];
    const isNear = Math.abs(one.x - x - width / 2) < 0.1 * width && Math.abs(one.y - y - height / 2) < 0.1 * height;
    return isNear && across > 0.65 && across < 1.3 && down > 0.65 && down < 2.2;
  };
  const isMan = (one) => men.some(({ parts }) => parts.includes(one.source));
  const ground = shapes.find((one) => /circle|rect|polygon/.test(one.kind) && isGround(one) && !isMan(one));
  if (ground !== undefined) {
    const names = { circle: "cx cy r", rect: "x y width height", polygon: "points" }[ground.kind] ?? "";
    const shape = Object.fromEntries(names.split(" ").map((name) => [name, ground.at(name)]));
    return draw(ground.kind, { class: look, ...shape });
  }
  const isColumn = height > 0.7 * box[3] && height > 2 * width;
  const here = men.filter(within(touch)).sort((one, other) => (isColumn ? other.y - one.y : 0));
  const man = here.at(-1);
  if (man === undefined) return draw("rect", { x, y, width, height, rx: 0.1 * Math.min(width, height), class: look });
  return draw("circle", { cx: man.x, cy: man.y, r: 0.14 * man.wide, class: `${look} dot` });
}
