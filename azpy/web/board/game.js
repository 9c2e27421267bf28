// What was played? A tree of moves: another move at an earlier point begins a variation.

/** Who searched in the stored games of a run; no player of a server has this name. */
export const RUN = "";

let positions = 0; // that were made

class Position {
  constructor(parent, move, short = null) {
    this.id = ++positions;
    this.parent = parent;
    this.move = move; // that led here; empty at the root
    this.short = short; // the move as people write it in short, if it is known
    this.player = undefined; // who played the move, where the position before it is not known: see `mover`
    this.notes = {}; // what the game's text says of the position: the values of each name
    this.ply = parent === null ? 0 : parent.ply + 1;
    this.children = [];
    this.next = null; // the child to go to when going on
    this.shown = null;
    this.finds = new Map(); // what searches found, by the name of who searched
    this.ended = null; // how the players ended the game here, for the first player
  }

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

  /** The short name of a move that can be played here, if the position is known. */
  shortOf(move) {
    return this.shown?.actions.find(({ name }) => name === move)?.short;
  }

  /** The short name of the move that led here. */
  get label() {
    return this.parent?.shortOf(this.move) ?? this.short ?? this.move;
  }

  /** What the move that led here lost, in value for the player who played it. Values of different networks, of short
   * searches (below `least` visits), and of those that were cut short, say nothing together: then it is null. */
  loss(adviser, least) {
    const [before, after] = [this.parent?.finds.get(adviser), this.finds.get(adviser)];
    if (before === undefined || !isWhole(before, least)) return null;
    const isSame = after !== undefined && isWhole(after, least) && networkOf(after) === networkOf(before);
    const values = this.outcome ?? (isSame ? after.values : null);
    const { player } = before.answer.rootInfo;
    return values === null ? null : before.values[player] - values[player];
  }

  /** Keeps what a search found, unless another one has found out more: `Game.know` drops those of other networks. */
  learn(adviser, found) {
    if ((this.finds.get(adviser)?.visits ?? 0) <= found.visits) this.finds.set(adviser, found);
  }
}

/** What a search found, of its answer. Of two players who share a zero sum the server says one value. */
export function foundOf(answer) {
  const { player, value, visits, values = player === 0 ? [value, -value] : [-value, value] } = answer.rootInfo;
  return { values, visits, answer };
}

const networkOf = ({ answer }) => answer.rootInfo.network;

/** Whether a search went to its own end, and was asked for enough. */
function isWhole({ answer, visits }, least) {
  const { stop } = answer.rootInfo;
  const isShort = stop === "simulations" && visits < least;
  return !answer.isDuringSearch && !isShort && !["stopped", "interrupted", "memory"].includes(stop);
}

/** What no other game has. */
export function newId() {
  return `${Date.now()} ${Math.random()}`;
}

/** The tree of moves, and where in it the board stands. */
export class Game {
  constructor(start = null) {
    this.name = ""; // of the game that is played; empty before it is on the board
    this.start = start; // the text of the position where the game begins; null for the game's own start
    this.id = newId(); // of the game where it is kept
    this.about = null; // players, ranks, result and tags of the text that the game came from
    this.begun = null; // milliseconds since 1970 when it began on this board; null for one that was loaded
    this.isPaired = false; // whether moves are counted in pairs, as in chess
    this.isZeroSum = true; // whether two players play, and one loses what the other wins
    this.names = ["player 0", "player 1"]; // what the players are called
    this.networks = new Map(); // the network that each player had when it was heard of last
    this.places = []; // the places of its board
    this.root = new Position(null, "");
    this.current = this.root;
  }

  /** A game that is played on this board. */
  static begin() {
    return Object.assign(new Game(), { begun: Date.now() });
  }

  /** Whether the run that played the game stored its searches. */
  get isStored() {
    return this.line().some((position) => position.finds.has(RUN));
  }

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
      for (const { finds } of this.all()) {
        if (finds.has(name) && networkOf(finds.get(name)) !== network) finds.delete(name);
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
  remove(position) {
    const { parent } = position;
    parent.children = parent.children.filter((other) => other !== position);
    parent.next = parent.children[0] ?? null;
    this.goTo(parent);
  }

  /** The position after these moves. */
  at(moves) {
    return moves.reduce((one, move) => one?.children.find((child) => child.move === move), this.root);
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

  /** All positions, each line to its end before its variations. */
  *all() {
    const left = [this.root];
    for (let one = left.pop(); one !== undefined; one = left.pop()) {
      yield one;
      left.push(...[...one.children].reverse());
    }
  }

  /** The game as the server reads and writes games: each move with the index of the one before it, or -1 at the
   * start, its name, its short name, who played it, and the notes on it. `ended` says after which of them, or -1
   * for none, the players ended the game, with the outcome for the first player and how. */
  toNodes() {
    const [nodes, ended, places] = [[], [], new Map()];
    for (const position of this.all()) {
      const at = places.size - 1;
      places.set(position, at);
      const { parent, move, label, mover, notes } = position;
      if (position.ended !== null) ended.push([at, position.ended.outcome, position.ended.why]);
      const node = [places.get(parent), move, label, mover ?? null];
      if (at >= 0) nodes.push(Object.keys(notes).length > 0 ? [...node, notes] : node);
    }
    const record = { position: this.start, nodes, notes: this.root.notes, ...this.about };
    return ended.length > 0 ? { ...record, ended } : record;
  }

  /** The game of what `toNodes` makes, with the board at the end of its main line. */
  static fromNodes({ position = null, nodes, notes = {}, ended = [], ...about }) {
    const { players = null, ranks = null, result = null, tags = [] } = about;
    // A file can have anything here, which the page would stumble over wherever it shows the game.
    const isText = (one) => one === null || typeof one === "string";
    const isEnd = (one) => Number.isInteger(one?.[0]) && [1, 0, -1].includes(one[1]);
    const areTexts = [players, ranks, result, tags].flat(2).every(isText) && [tags].flat().every(Array.isArray);
    if (!areTexts || ![ended].flat().every(isEnd)) throw new Error("this JSON is not a saved game");
    const game = new Game(position);
    if (players !== null || result !== null || tags.length > 0) game.about = { players, ranks, result, tags };
    game.root.notes = notes ?? {};
    const made = [];
    for (const [before, name, short, player, noted] of nodes) {
      const one = (made[before] ?? game.root).add(name, short);
      made.push(Object.assign(one, { player, notes: noted ?? {} }));
    }
    for (const [at, outcome, why] of ended) (made[at] ?? game.root).ended = { outcome, why: `${why}` };
    game.goTo(game.end);
    return game;
  }
}
