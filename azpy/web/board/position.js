// What can be played here, by touches of the picture or by names?

// A touch is a place with x, y, width and height in the picture's units; an action has a name, a short one and touches;
// a mark has a shape, a text and touches.

/** The notes on a position that may be drawn: all but its words. */
export function drawn({ C: comments = [], ...notes }) {
  const C = comments.flatMap((comment) => comment.match(/\[%c(sl|al)[^\]]*\]/g) ?? []);
  return { ...notes, ...(C.length > 0 ? { C } : {}) };
}

function begins(action, path) {
  return action.touches.length >= path.length && path.every((place, index) => action.touches[index][0] === place);
}

/** The places that can be touched after those of `path`, by name, with the actions that go on there. */
export function nextPlaces(actions, path) {
  const places = new Map();
  for (const action of actions) {
    if (action.touches.length <= path.length || !begins(action, path)) continue;
    const touch = action.touches[path.length];
    const known = places.get(touch[0]);
    if (known === undefined) places.set(touch[0], { touch, actions: [action] });
    else known.actions.push(action);
  }
  return places;
}

export function startingWith(actions, path) {
  return actions.filter((action) => begins(action, path));
}

/** The actions whose touches are exactly those of `path`. Several have to be told apart by name. */
export function playedBy(actions, path) {
  return startingWith(actions, path).filter((action) => action.touches.length === path.length);
}

/** The name of the action or roll that a text means, by its name or short name. */
export function named({ actions, rolls }, text) {
  const words = [
    ...actions.flatMap(({ name, short }) => [name, short].map((word) => ({ word, name }))),
    ...rolls.map(({ name }) => ({ word: name, name })),
  ];
  // In chess bxc3 is the pawn's and Bxc3 the bishop's, with a sign of check or without.
  // So a text is read as it stands, then without the sign of check, then in any case.
  const readings = [(word) => word, (word) => word.replace(/[+#]$/, ""), (word) => word.toLowerCase()];
  const found = readings.map((read) => words.find(({ word }) => read(word) === read(text)));
  return found.find((one) => one !== undefined)?.name ?? null;
}

/** A roll by its probability, for a share from 0 to below 1. */
export function rolled(rolls, share) {
  let left = share * rolls.reduce((sum, roll) => sum + roll.probability, 0);
  for (const roll of rolls) {
    left -= roll.probability;
    if (left < 0) return roll;
  }
  return rolls[rolls.length - 1];
}

/** The size of a picture in its own units. */
export function boxOf(svg) {
  const head = /<svg\b[^>]*>/.exec(svg)?.[0] ?? "";
  const box = /\bviewBox=["']\s*([^"']*?)\s*["']/.exec(head)?.[1].split(/[\s,]+/).map(Number);
  if (box?.length === 4 && box.every(Number.isFinite) && box[2] > 0 && box[3] > 0) {
    return [box[0], box[1], box[2], box[3]];
  }
  const sides = [/\swidth=["']([0-9.]+)/, /\sheight=["']([0-9.]+)/];
  const [width, height] = sides.map((side) => Number(side.exec(head)?.[1]));
  return [0, 0, width > 0 ? width : 300, height > 0 ? height : 150];
}
