// Which moves make a turn? A roll of dice and all steps of one player are one.

/** Where each move of a game stands in its turn: the number of the turn (or of the pair, in a game that is counted in
 * pairs), whose turn it is, and whether the move begins it. `hasSteps` says whether a turn can be several moves. */
export function turnsOf(game) {
  const places = new Map();
  let hasSteps = false;
  // Dice are thrown for the turn that follows, but where a player has them thrown.
  const isOwn = game.start === null && game.root.children[0]?.mover !== null;
  const isAlone = game.names.length === 1;
  const isSecond = game.root.children[0]?.mover === 1;
  const open = [game.root];
  for (let one = open.pop(); one !== undefined; one = open.pop()) {
    const before = places.get(one);
    for (const child of one.children) {
      const owner = child.mover === null && isOwn ? before?.owner : ownerOf(child, before?.owner, game.names.length);
      // Of one player each move ends a turn.
      const goesOn = isAlone ? one.mover === null : owner !== undefined && owner === before?.owner;
      const begins = before === undefined || !goesOn;
      hasSteps ||= !begins || child.mover === null;
      const pairs = Math.floor((child.ply + (isSecond ? 2 : 1)) / 2);
      const number = game.isPaired ? pairs : (before?.number ?? 0) + (begins ? 1 : 0);
      places.set(child, { number, owner, begins });
    }
    open.push(...one.children);
  }
  return { places, hasSteps };
}

/** Whose turn a move is part of; null at a roll without a move after it. */
function ownerOf(position, before, players) {
  if (position.mover !== null) return position.mover;
  const [next] = position.children;
  // A roll behind a roll: its player could not move. Of more than two it is not known who that was.
  if (next?.mover === null) return typeof before === "number" && players <= 2 ? players - 1 - before : undefined;
  return next?.mover ?? position.shown?.player ?? null;
}

/** The moves of the last turn that led to a position, the newest first; rolls are left out. */
export function* lastTurn(position, players) {
  let one = position;
  while (one.mover === null && one.parent !== null) one = one.parent;
  const { mover } = one;
  for (; one.parent !== null && one.mover === mover; one = one.parent) {
    yield one;
    if (mover === undefined || players === 1) return;
  }
}
