// How is a piece laid that covers several cells? It is shaded where it would lie; a key or a tap on the piece turns it.

/** How a piece lies: the ways of its cells from the first one. */
function shapeOf({ touches: [, [, x, y], ...others] }) {
  return others.map(([, u, v]) => `${Math.round(u - x)} ${Math.round(v - y)}`).join();
}

/** How far the middle of a tile lies from that of a place. */
function distance({ touches: [, ...cells] }, [, x, y]) {
  const middle = [1, 2].map((axis) => cells.reduce((sum, cell) => sum + Number(cell[axis]), 0) / cells.length);
  return Math.hypot(middle[0] - x, middle[1] - y);
}

/** A piece that was chosen, with all ways to lay it: its place, and the cells that it covers. */
export class Tile {
  /** `actions` begin with the piece. */
  constructor(actions) {
    const shapes = new Map(actions.map((action) => [shapeOf(action), action]));
    this.ways = [...shapes.keys()].map((shape) => actions.filter((action) => shapeOf(action) === shape));
    this.way = 0; // how it lies now
    this.laid = actions[0]; // where it is shaded
    this.turn(0);
  }

  /** Turns the piece, near to where it is shaded. */
  turn(steps) {
    this.way = (this.way + steps) % this.ways.length;
    const actions = this.ways[this.way];
    const near = this.laid.touches[1];
    this.laid = actions.reduce((best, one) => (distance(one, near) < distance(best, near) ? one : best));
    /** The cells that can be touched, as `nextPlaces` has them: each with the tile whose middle is nearest. */
    this.next = new Map();
    for (const action of actions) {
      for (const touch of action.touches.slice(1)) {
        const known = this.next.get(touch[0])?.actions[0];
        const isNearer = known === undefined || distance(action, touch) < distance(known, touch);
        if (isNearer) this.next.set(touch[0], { touch, actions: [action] });
      }
    }
  }
}
