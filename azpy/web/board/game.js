// What was played? A tree of moves: another move at an earlier point begins a variation.

/** Who searched in the stored games of a run; no player of a server has this name. */
export const RUN = "";

/** @typedef {Object} Found what a search says of a position @property {number[]} values for each player, -1 to 1
 * @property {number} visits @property {any} answer as the server sent it */

let positions = 0; // that were made

/** A position of the record. */
export class Position {
  /** @param {string} move that led here; empty at the root @param {string | null} short the move as people write it
   * in short, if it is known */
  constructor(parent, move, short = null) {
    this.id = ++positions;
    this.parent = parent;
    this.move = move;
    this.short = short;
    /** @type {number | null | undefined} who played the move, where the position before it is not known: see `mover` */
    this.player = undefined;
    /** @type {Record<string, string[]>} what the game's text says of the position: the values of each name */
    this.notes = {};
    this.ply = parent === null ? 0 : parent.ply + 1;
    this.children = [];
    /** @type {Position | null} the child to go to when going on */
    this.next = null;
    this.shown = null;
    /** @type {Map<string, Found>} by the name of the player that searched */
    this.finds = new Map();
    /** @type {{network: string, value: number} | null} what the adviser's network says without a search */
    this.alone = null;
    /** @type {{outcome: number, why: string} | null} how the players ended the game here, for the first player */
    this.ended = null;
  }

  /** Adds a move behind this position. */
  add(move, short = null) {
    const child = new Position(this, move, short);
    this.children.push(child);
    this.next ??= child;
    return child;
  }

  /** The names of the moves that lead here. */
  moves() {
    const names = [];
    for (let one = this; one.parent !== null; one = one.parent) names.push(one.move);
    return names.reverse();
  }

  /** How the game ended here, for each player; null while it goes on. */
  get outcome() {
    return this.ended === null ? (this.shown?.outcomes ?? null) : [this.ended.outcome, -this.ended.outcome];
  }

  /** The value for each player, if this adviser knows it. */
  values(adviser) {
    return this.outcome ?? this.finds.get(adviser)?.values ?? null;
  }

  /** Who played the move that led here: null for dice, undefined while that is not known. */
  get mover() {
    return this.parent?.shown ? this.parent.shown.player : this.player;
  }

  /** What is said of the position; empty for nothing. */
  get comment() {
    return this.notes.C?.[0] ?? "";
  }

  set comment(text) {
    if (text.trim() === "") delete this.notes.C;
    else this.notes.C = [text];
  }

  /** The short name of the move that led here. */
  get label() {
    const action = this.parent?.shown?.actions.find((one) => one.name === this.move);
    return action?.short ?? this.short ?? this.move;
  }

  /** What the move that led here lost, in value for the player who played it. Values of different networks, of short
   * searches, and of those that were cut short, say nothing together. @param {number} least visits of a search that
   * is not short @returns {number | null} null if it is not known */
  loss(adviser, least) {
    const [before, after] = [this.parent?.finds.get(adviser), this.finds.get(adviser)];
    if (before === undefined || !isWhole(before, least)) return null;
    const isSame = after !== undefined && isWhole(after, least) && networkOf(after) === networkOf(before);
    const values = this.outcome ?? (isSame ? after.values : null);
    const { player } = before.answer.rootInfo;
    return values === null ? null : before.values[player] - values[player];
  }

  /** Keeps what a search found, unless another search of the same network has found out more. */
  learn(adviser, found) {
    const known = this.finds.get(adviser);
    const isMore = known === undefined || networkOf(known) !== networkOf(found) || known.visits <= found.visits;
    if (isMore) this.finds.set(adviser, found);
  }
}

/** The hash of the network that searched. */
function networkOf(found) {
  return found.answer.rootInfo.network;
}

/** Whether a search went to its own end, and was asked for enough. @param {number} least visits */
function isWhole({ answer, visits }, least) {
  const { stop } = answer.rootInfo;
  const isShort = stop === "simulations" && visits < least;
  return !answer.isDuringSearch && !isShort && !["stopped", "interrupted", "memory"].includes(stop);
}

/** What no other game has. */
export function newId() {
  return `${Date.now()} ${Math.random()}`;
}

/** @typedef {Object} About what a text says of a game as a whole @property {(string | null)[] | null} players their
 * names @property {[string | null, string | null] | null} ranks @property {string | null} result @property
 * {[string, string][]} tags what else it says, by names of its notation */

/** The tree of moves, and where in it the board stands. */
export class Game {
  /** @param {string | null} start the text of the position where the game begins; null for the game's own start */
  constructor(start = null) {
    this.start = start;
    this.id = newId(); // of the game where it is kept
    /** @type {About | null} what the text says that the game came from */
    this.about = null;
    /** @type {number | null} milliseconds since 1970 when it began on this board; null for one that was loaded */
    this.begun = null;
    /** Whether moves are counted in pairs, as in chess. */
    this.isPaired = false;
    /** Whether two players play, and one loses what the other wins. */
    this.isZeroSum = true;
    /** @type {string[]} what the players are called */
    this.names = ["player 0", "player 1"];
    /** @type {Map<string, string | null>} the network that each player had when it was heard of last */
    this.networks = new Map();
    /** @type {import("./position.js").Touch[]} the places of its board */
    this.places = [];
    this.root = new Position(null, "");
    this.current = this.root;
  }

  /** A game that is played on this board. @param {string | null} [start] as of the constructor */
  static begin(start) {
    return Object.assign(new Game(start), { begun: Date.now() });
  }

  /** Whether the run that played the game stored its searches. */
  get isStored() {
    return this.line().some((position) => position.finds.has(RUN));
  }

  /** The end of the main line. */
  get end() {
    let one = this.root;
    while (one.children.length > 0) [one] = one.children;
    return one;
  }

  /** Learns which networks players have now. What others found under the same name does not count any more. */
  know(models) {
    for (const { name, network } of models) {
      if (this.networks.get(name) === network) continue;
      this.networks.set(name, network);
      const left = [this.root];
      for (let one = left.pop(); one !== undefined; one = left.pop()) {
        const found = one.finds.get(name);
        if (found !== undefined && networkOf(found) !== network) one.finds.delete(name);
        left.push(...one.children);
      }
    }
  }

  /** Plays a move at the current position. */
  play(move) {
    const here = this.current;
    let child = here.children.find((one) => one.move === move);
    if (child === undefined) {
      // The result was that of the main line's end before.
      if (this.about !== null && here === this.end) this.about = { ...this.about, result: null };
      // The board may have been open for days before the first move.
      if (this.begun !== null && this.root.children.length === 0) this.begun = Date.now();
      child = here.add(move);
    }
    this.goTo(child);
  }

  /** Makes the line to a position the main line. */
  promote(position) {
    for (let one = position; one.parent !== null; one = one.parent) {
      const { parent } = one;
      parent.children = [one, ...parent.children.filter((other) => other !== one)];
    }
    if (this.about !== null) this.about = { ...this.about, result: null };
  }

  /** Takes a move out, and all that follow it. */
  remove({ parent, id }) {
    if (parent === null) return;
    parent.children = parent.children.filter((other) => other.id !== id);
    parent.next = parent.children[0] ?? null;
    this.goTo(parent);
  }

  /** The position after these moves. */
  at(moves) {
    let one = this.root;
    for (const move of moves) one = one?.children.find((child) => child.move === move);
    return one;
  }

  goTo(position) {
    for (let one = position; one.parent !== null; one = one.parent) one.parent.next = one;
    this.current = position;
  }

  /** The positions from the start through the current one to the end of its line. */
  line() {
    const found = [];
    for (let one = this.current; one !== null; one = one.parent) found.push(one);
    found.reverse();
    for (let one = this.current.next; one !== null; one = one.next) found.push(one);
    return found;
  }

  /** The game as the server reads and writes games: each move with the index of the one before it, or -1 at the
   * start, its name, its short name, who played it, and the notes on it. `ended` says after which of them, or -1
   * for none, the players ended the game, with the outcome for the first player and how. */
  toNodes() {
    const nodes = [];
    const ended = [];
    const end = (one, at) => one.ended !== null && ended.push([at, one.ended.outcome, one.ended.why]);
    end(this.root, -1);
    const left = this.root.children.map((position) => ({ position, before: -1 })).reverse();
    for (let one = left.pop(); one !== undefined; one = left.pop()) {
      const { move, label, mover, notes } = one.position;
      const node = [one.before, move, label, mover ?? null];
      const before = nodes.push(Object.keys(notes).length > 0 ? [...node, notes] : node) - 1;
      end(one.position, before);
      left.push(...one.position.children.map((position) => ({ position, before })).reverse());
    }
    const record = { position: this.start, nodes, notes: this.root.notes, ...this.about };
    return ended.length > 0 ? { ...record, ended } : record;
  }

  /** @param {any} object as `toNodes` makes it @returns {Game} with the board at the end of its main line */
  static fromNodes({ position = null, nodes, notes = {}, ended = [], ...about }) {
    const { players = null, ranks = null, result = null, tags = [] } = about;
    const game = new Game(position);
    if (players !== null || result !== null || tags.length > 0) game.about = { players, ranks, result, tags };
    game.root.notes = notes;
    const made = [];
    for (const [before, name, short, player, noted = {}] of nodes) {
      const one = (made[before] ?? game.root).add(name, short);
      made.push(Object.assign(one, { player, notes: noted }));
    }
    for (const [at, outcome, why] of ended) (made[at] ?? game.root).ended = { outcome, why: `${why}` };
    game.goTo(game.end);
    return game;
  }
}
