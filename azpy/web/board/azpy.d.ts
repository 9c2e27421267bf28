/** A trained player. */
export class Player {
  /** Opens an exported folder; that of this file without `src`. */
  static load(src?: string | URL | null): Promise<Player>;
  /** The game, such as "connect_four". */
  readonly game: string;
  /** Names of levels, the weakest first. */
  readonly levels: string[];
  /** Chooses a move after these ones, by name; it fails if the game is over there. */
  choose(moves: string[], options?: Strength & Start): Promise<string>;
  /** Describes the position after these moves. */
  look(moves: string[], options?: Start): Promise<Position>;
  /** Ends the player's worker. */
  close(): void;
}

/** How strongly to play; without one of them as exported. */
export interface Strength {
  level?: string;
  simulations?: number;
  seconds?: number;
}

export interface Start {
  /** Where the game began, in the game's notation, if not at its usual start. */
  position?: string;
}

export interface Position {
  /** Who is to move; null for dice and at the end. */
  player: number | null;
  /** Names of the legal moves, or of the rolls. */
  moves: string[];
  /** What player 0 gets at the end; what each player gets where two players do not share a zero sum. */
  outcome: number | number[] | null;
  /** How the game ended, in words. */
  result: string | null;
  /** The position in the game's notation, where it has one. */
  text: string | null;
  /** The board as an SVG document. */
  svg: string;
}

/** The tag <azpy-board src="FOLDER" side="first" level="casual" theme="dark" size="24rem" offline>. `side` is also second,
 * a number, all or none; `level` also a number of simulations, or seconds such as 2 s. */
export interface AzpyBoard extends HTMLElement {
  /** Names of the moves on the board. */
  readonly moves: string[];
  newGame(): void;
  addEventListener(kind: "move" | "end", listener: (event: CustomEvent<{ moves: string[]; result: string | null }>) => void, options?: boolean | AddEventListenerOptions): void;
  addEventListener<K extends keyof HTMLElementEventMap>(kind: K, listener: (this: HTMLElement, event: HTMLElementEventMap[K]) => any, options?: boolean | AddEventListenerOptions): void;
  addEventListener(kind: string, listener: EventListenerOrEventListenerObject, options?: boolean | AddEventListenerOptions): void;
}

declare global {
  interface HTMLElementTagNameMap {
    "azpy-board": AzpyBoard;
  }
}
