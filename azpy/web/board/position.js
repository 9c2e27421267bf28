// What can be played here, by touches of the picture or by names?

// A touch is a place with x, y, width and height in the picture's units; an action has a name, a short one and touches;
// a mark has a shape, a text and touches.

/** The actions whose first touches are those of `path`. */
export function startingWith(actions, path) {
  return actions.filter(({ touches }) => path.every((place, index) => touches[index]?.[0] === place));
}

/** The places that can be touched after those of `path`, by name, with the actions that go on there. */
export function nextPlaces(actions, path) {
  const places = new Map();
  for (const action of startingWith(actions, path)) {
    const touch = action.touches[path.length];
    if (touch === undefined) continue;
    const known = places.get(touch[0]) ?? { touch, actions: [] };
    known.actions.push(action);
    places.set(touch[0], known);
  }
  return places;
}

/** The actions whose touches are exactly those of `path`. Several have to be told apart by name. */
export function playedBy(actions, path) {
  return startingWith(actions, path).filter((action) => action.touches.length === path.length);
}

/** The name of the action or roll that a text means, by its name or short name. */
export function named({ actions, rolls }, text) {
  const wordsOf = ({ name, short = name }) => [name, short].map((word) => ({ word, name }));
  const words = [...actions, ...rolls].flatMap(wordsOf);
  // In chess bxc3 is the pawn's and Bxc3 the bishop's, with a sign of check or without.
  // So a text is read as it stands, then without the sign of check, then in any case.
  const readings = [(word) => word, (word) => word.replace(/[+#]$/, ""), (word) => word.toLowerCase()];
  const found = readings.map((read) => words.find(({ word }) => read(word) === read(text)));
  return found.find((one) => one !== undefined)?.name ?? null;
}

/** A roll by its probability, for a share from 0 to below 1. */
export function rolled(rolls, share) {
  let left = share * rolls.reduce((sum, { probability }) => sum + probability, 0);
  return rolls.find(({ probability }) => (left -= probability) < 0) ?? rolls.at(-1);
}

/** The size of a picture in its own units. */
export function boxOf(svg) {
  const head = /<svg\b[^>]*>/.exec(svg)?.[0] ?? "";
  const box = /\bviewBox=["']\s*([^"']*?)\s*["']/.exec(head)?.[1].split(/[\s,]+/).map(Number);
  if (box?.length === 4 && box.every(Number.isFinite) && box[2] > 0 && box[3] > 0) return box;
  const sides = [/\swidth=["']([0-9.]+)/, /\sheight=["']([0-9.]+)/];
  const [width, height] = sides.map((side) => Number(side.exec(head)?.[1]));
  return [0, 0, width > 0 ? width : 300, height > 0 ? height : 150];
}
