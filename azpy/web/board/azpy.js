// A player in your own page or program: the tag <azpy-board>, and the class Player without a board. azpy.d.ts describes
// both.
//
// <script type="module" src="player/azpy.js"></script> <azpy-board></azpy-board>
// import { Player } from "./player/azpy.js"; const player = await Player.load(); await player.choose(["4"]);

const HERE = new URL(".", import.meta.url);

/** The address of an exported folder; of the one of this file for null. */
function folder(src) {
  if (src === null) return HERE;
  const base = globalThis.document?.baseURI ?? globalThis.location?.href ?? process.getBuiltinModule("node:url").pathToFileURL(`${process.cwd()}/`);
  const url = new URL(src, base);
  return url.pathname.endsWith("/") ? url : new URL(`${url.href}/`);
}

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
  #waiting = new Map();
  #count = 0;
  #send = () => {};
  #end = () => {};

  static async load(src = null) {
    const base = folder(src);
    const { files } = JSON.parse(new TextDecoder().decode(await read(new URL("azpy.json", base))));
    const board = new URL(`${files}/board/`, base);
    const player = new Player();
    await player.#open(board);
    const { models: [{ game, levels }] } = await player.#ask({ action: "query_models" });
    return Object.assign(player, { game, levels: levels.map(({ name }) => name) });
  }

  /** Opens the player in a worker, or here where browsers refuse one: in Node, and from another host. */
  async #open(board) {
    let last = "the worker cannot be started"; // what was said last that belongs to no query
    const hear = (said) => {
      if (said === null) this.#over(last);
      else last = this.#take(said) ?? last;
    };
    if (globalThis.document === undefined || board.origin !== location.origin) {
      const { Session } = await import(/* @vite-ignore */ /* webpackIgnore: true */ new URL("session.js", board).href);
      const session = new Session((name) => read(new URL(name, board)), hear);
      this.#send = (text) => session.ask(text);
      this.#end = () => (session.engine = null);
      return session.open();
    }
    const worker = new Worker(new URL("worker.js", board), { type: "module" });
    this.#send = (text) => worker.postMessage(text);
    this.#end = () => worker.terminate();
    return new Promise((resolve) => {
      const listen = (said) => {
        if (said !== true) hear(said);
        if (said === true || said === null) resolve(); // the first query says what is wrong
      };
      worker.addEventListener("error", () => listen(null));
      worker.addEventListener("message", ({ data }) => listen(data));
    });
  }

  /** Takes an answer. Returns an error that belongs to no query. */
  #take(line) {
    const { id, error, ...answer } = JSON.parse(line);
    const one = this.#waiting.get(id);
    if (one === undefined) return error ?? null;
    this.#waiting.delete(id);
    if (error === undefined) one.resolve(answer);
    else one.reject(new Error(error));
    return null;
  }

  #over(why) {
    this.#send = () => this.#over(why);
    for (const one of this.#waiting.values()) one.reject(new Error(why));
    this.#waiting.clear();
  }

  #ask(query) {
    const id = `${++this.#count}`;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      // The program cannot read half of a surrogate pair, and its error would not name the query.
      this.#send(JSON.stringify({ id, ...query }, (_, value) => value?.toWellFormed?.() ?? value));
    });
  }

  async choose(moves, options = {}) {
    const { move } = await this.#ask({ moves, priority: "play", ...options });
    if (move === null || move === undefined) throw new Error("the game is over: there is no move to choose");
    return move;
  }

  async look(moves, options = {}) {
    const { player, actions, rolls, outcome, outcomes, result, text, svg } = await this.#ask({ action: "show", moves, ...options });
    const names = [...actions, ...rolls].map(({ name }) => name);
    return { player, moves: names, outcome: outcome ?? outcomes ?? null, result, text, svg };
  }

  close() {
    this.#end();
    this.#over("the player was closed");
  }
}

const STYLE = ":host { display: block; max-width: 100% } iframe { display: block; width: 100%; border: 0 }";

class AzpyBoard extends (globalThis.HTMLElement ?? class {}) {
  static observedAttributes = ["src", "side", "level", "theme", "size", "offline"];
  #frame = globalThis.document?.createElement("iframe");
  moves = [];
  #hear = ({ source, data }) => {
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

  newGame() {
    this.#frame.contentWindow?.postMessage({ azpy: "new" }, "*");
  }
}

const tags = globalThis.customElements;
// Another player of the same page may have brought the tag.
if (tags?.get("azpy-board") === undefined) tags?.define("azpy-board", AzpyBoard);
