// A player in your own page or program: the tag <azpy-board>, and the class Player without a board.
//
// <script type="module" src="player/azpy.js"></script> <azpy-board></azpy-board>
// import { Player } from "./player/azpy.js"; const player = await Player.load(); await player.choose(["4"]);

const HERE = new URL(".", import.meta.url);

/** @param {string | URL | null} src an exported folder; null for the one of this file */
function folder(src) {
  if (src === null) return HERE;
  const base = globalThis.document?.baseURI ?? globalThis.location?.href ?? process.getBuiltinModule("node:url").pathToFileURL(`${process.cwd()}/`);
  const url = new URL(src, base);
  return url.pathname.endsWith("/") ? url : new URL(`${url.href}/`);
}

/** @param {URL} url @returns {Promise<Uint8Array>} */
async function read(url) {
  if (url.protocol === "file:") {
    const { readFile } = await import(/* @vite-ignore */ /* webpackIgnore: true */ "node:fs/promises");
    return new Uint8Array(await readFile(url));
  }
  const response = await fetch(url, { cache: "no-cache" }); // azpy.json names another folder after each export
  if (!response.ok) throw new Error(`${url} is missing: the host answered ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
}

/** A trained player. Its search runs in a worker of the page, or in slices where there is none. */
export class Player {
  /** @type {Map<string, {resolve: (answer: any) => void, reject: (error: Error) => void}>} */
  #waiting = new Map();
  #count = 0;
  #send = (/** @type {string} */ _) => {};
  #end = () => {};

  /** Opens a player. @param {string | URL | null} [src] the exported folder; that of this file without it
   * @returns {Promise<Player>} it fails if files are missing or cannot be used */
  static async load(src = null) {
    const base = folder(src);
    const { files } = JSON.parse(new TextDecoder().decode(await read(new URL("azpy.json", base))));
    const board = new URL(`${files}/board/`, base);
    const player = new Player();
    const isPage = globalThis.document !== undefined && board.origin === location.origin; // browsers refuse a worker from another host
    if (isPage) await player.#work(new URL("worker.js", board));
    else await player.#run(board);
    const { models } = await player.#ask({ action: "query_models" });
    /** The game, such as "connect_four". @type {string} */
    player.game = models[0].game;
    /** Names of levels, the weakest first. @type {string[]} */
    player.levels = models[0].levels.map(({ name }) => name);
    return player;
  }

  /** @param {URL} script */
  #work(script) {
    const worker = new Worker(script, { type: "module" });
    this.#send = (text) => worker.postMessage(text);
    this.#end = () => worker.terminate();
    return new Promise((resolve, reject) => {
      let last = "the worker cannot be started";
      worker.addEventListener("error", () => this.#over(last, reject));
      worker.addEventListener("message", ({ data }) => {
        if (data === true) return resolve(null);
        if (data === null) return this.#over(last, reject);
        last = this.#take(data) ?? last;
      });
    });
  }

  /** @param {URL} board */
  async #run(board) {
    const { Session } = await import(/* @vite-ignore */ /* webpackIgnore: true */ new URL("session.js", board).href);
    let last = "";
    const say = (/** @type {string | null} */ line) => {
      if (line === null) this.#over(last);
      else last = this.#take(line) ?? last;
    };
    const session = new Session((name) => read(new URL(name, board)), say);
    await session.open();
    this.#send = (text) => session.ask(text);
    this.#end = () => (session.engine = null);
  }

  /** @param {string} line @returns {string | null} an error that belongs to no query */
  #take(line) {
    const { id, error, ...answer } = JSON.parse(line);
    const one = this.#waiting.get(id);
    if (one === undefined) return error ?? null;
    this.#waiting.delete(id);
    if (error === undefined) one.resolve(answer);
    else one.reject(new Error(error));
    return null;
  }

  /** @param {string} why @param {(error: Error) => void} [reject] */
  #over(why, reject) {
    this.#send = () => this.#over(why);
    reject?.(new Error(why));
    for (const one of this.#waiting.values()) one.reject(new Error(why));
    this.#waiting.clear();
  }

  /** @param {Record<string, unknown>} query @returns {Promise<any>} */
  #ask(query) {
    const id = `${++this.#count}`;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#send(JSON.stringify({ id, ...query }));
    });
  }

  /**
   * Chooses a move.
   * @param {string[]} moves names of the moves played so far
   * @param {{level?: string, simulations?: number, seconds?: number, position?: string}} [options] how strongly: one of
   *   `level`, `simulations` and `seconds`, else as exported; and where the game began, if not at its start
   * @returns {Promise<string>} the move's name; it fails if the game is over there
   */
  async choose(moves, options = {}) {
    const { move } = await this.#ask({ moves, priority: "play", ...options });
    if (move === null || move === undefined) throw new Error("the game is over: there is no move to choose");
    return move;
  }

  /**
   * Describes a position.
   * @param {string[]} moves as in `choose` @param {{position?: string}} [options]
   * @returns {Promise<{player: number | null, moves: string[], outcome: number | number[] | null, result: string | null,
   *   text: string | null, svg: string}>} who is to move (null for dice, and at the end), the names of the legal moves or
   *   rolls, what player 0 (with other numbers of players each) gets at the end, and the position as text and picture
   */
  async look(moves, options = {}) {
    const { player, actions, rolls, outcome, outcomes, result, text, svg } = await this.#ask({ action: "show", moves, ...options });
    const names = [...actions, ...rolls].map(({ name }) => name);
    return { player, moves: names, outcome: outcome ?? outcomes ?? null, result, text, svg };
  }

  /** Ends its worker. */
  close() {
    this.#end();
    this.#over("the player was closed");
  }
}

const STYLE = ":host { display: block; max-width: 100% } iframe { display: block; width: 100%; border: 0 }";

/**
 * A board to play on. Attributes: `src`, the exported folder; `side` of the person (first, second, a number, all or
 * none); `level` or simulations; `theme` (light or dark); `size`, its width in CSS; `offline`, to keep it in the browser for
 * when there is no network. Events: `move` and `end`, whose
 * `detail` has the `moves` of the game.
 */
class AzpyBoard extends (globalThis.HTMLElement ?? class {}) {
  static observedAttributes = ["src", "side", "level", "theme", "size", "offline"];
  #frame = globalThis.document?.createElement("iframe");
  /** Names of the moves on the board. @type {string[]} */
  moves = [];
  #hear = (/** @type {MessageEvent} */ { source, data }) => {
    if (source !== this.#frame.contentWindow || typeof data?.azpy !== "string") return;
    const { azpy: what, ...detail } = data;
    if (what === "size") this.#frame.style.height = `${detail.height}px`;
    if (what === "move" || what === "end") {
      this.moves = detail.moves;
      this.dispatchEvent(new CustomEvent(what, { detail }));
    }
  };

  constructor() {
    super();
    this.#frame.title = "Board";
    const style = new CSSStyleSheet(); // a policy may forbid <style>
    style.replaceSync(STYLE);
    const root = this.attachShadow({ mode: "open" });
    root.adoptedStyleSheets = [style];
    root.append(this.#frame);
  }

  connectedCallback() {
    addEventListener("message", this.#hear);
    this.#open();
  }

  disconnectedCallback() {
    removeEventListener("message", this.#hear);
  }

  /** @param {string} name */
  attributeChangedCallback(name) {
    if (name === "theme") {
      const theme = this.getAttribute("theme") ?? "";
      // With a ground of its own, as the page around it may have the other theme.
      Object.assign(this.#frame.style, { colorScheme: theme, background: theme && "Canvas" });
    } else if (name === "size") this.style.width = this.getAttribute("size") ?? "";
    else if (this.isConnected) this.#open();
  }

  #open() {
    const page = new URL("index.html", folder(this.getAttribute("src")));
    const given = ["side", "level", "offline"].filter((name) => this.hasAttribute(name));
    page.search = `${new URLSearchParams([["embed", ""], ...given.map((name) => [name, `${this.getAttribute(name)}`])])}`;
    if (this.#frame.src !== page.href) this.#frame.src = page.href;
  }

  /** Begins a new game. */
  newGame() {
    this.#frame.contentWindow?.postMessage({ azpy: "new" }, "*");
  }
}

const tags = globalThis.customElements;
// Another player of the same page may have brought the tag.
if (tags?.get("azpy-board") === undefined) tags?.define("azpy-board", AzpyBoard);
