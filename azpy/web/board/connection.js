// How does the page talk with the server? One WebSocket, or what stands in for it on a page without a server; each answer
// finds the query with its id.

import { complain } from "./dom.js";

const LONGEST_WAIT = 8000; // milliseconds between two tries to connect
const LONGEST_MESSAGE = 60_000; // bytes: the server takes 64 KiB, and more by POST
const MOST_STARTS = 3; // of a worker that fails: each loads the program anew
// The server cannot read half of a surrogate pair, and its error would not name the query.
const wellFormed = (_, value) => value?.toWellFormed?.() ?? value;
export const AGAIN = 1000; // milliseconds until a server that was busy is asked again

/** Events: `open`, `lost` (its `detail` is true where nothing answers), and `ended` (it does not try again). */
export class Connection extends EventTarget {
  /** `connect` makes a WebSocket, or what stands in for one. Before it, `enter` has the server let the page in. */
  constructor(connect, enter) {
    super();
    [this.connect, this.enter] = [connect, enter];
    this.socket = null;
    this.count = 0;
    this.wait = 250;
    this.isEnded = false;
    this.waiting = new Map();
  }

  get isOpen() {
    return this.socket !== null && this.socket.readyState === WebSocket.OPEN;
  }

  /** Connects, and again whenever the connection is lost. */
  async open() {
    try {
      await this.enter();
    } catch {
      return this.again(true);
    }
    const socket = this.connect();
    this.socket = socket;
    socket.addEventListener("open", () => {
      this.wait = 250;
      this.dispatchEvent(new Event("open"));
    });
    socket.addEventListener("message", (event) => this.take(JSON.parse(event.data)));
    socket.addEventListener("close", () => {
      for (const one of this.waiting.values()) one.reject(new Lost());
      this.waiting.clear();
      this.isEnded = socket.isLast === true;
      if (this.isEnded) this.dispatchEvent(new Event("ended"));
      else this.again(false);
    });
  }

  again(isGone) {
    this.dispatchEvent(new CustomEvent("lost", { detail: isGone }));
    this.wait = Math.min(LONGEST_WAIT, 2 * this.wait);
    setTimeout(() => this.open(), this.wait);
  }

  /** Sends a query or an action; `each` gets each report, and the answer. One that is longer than a message goes by POST,
   * and has no reports. The `answer` fails with what the server said, or when the connection ends. `stop` has the
   * search answer with what it knows. */
  ask(query, each = () => {}) {
    const id = `${++this.count}`;
    const text = JSON.stringify({ id, ...query }, wellFormed);
    const answer = new Promise((resolve, reject) => {
      if (!this.isOpen || this.socket === null) return reject(new Lost());
      if (new Blob([text]).size > (this.socket.longest ?? LONGEST_MESSAGE)) {
        const whole = JSON.stringify({ id, ...query, reportDuringSearchEvery: undefined }, wellFormed);
        return fetched("query", whole).then(resolve, reject);
      }
      this.waiting.set(id, { each, resolve, reject });
      this.socket.send(text);
    });
    answer.catch(() => {}); // whoever waits for the answer hears of the error
    return { answer, stop: () => this.waiting.has(id) && this.ask({ action: "terminate", terminateId: id }) };
  }

  take(answer) {
    const one = this.waiting.get(answer.id);
    if (one === undefined) return answer.error && complain(answer.error);
    if (answer.isDuringSearch) return one.each(answer);
    this.waiting.delete(answer.id);
    if (answer.error) return one.reject(refusal(answer));
    one.each(answer);
    one.resolve(answer);
  }
}

let starts = 0;

/** What stands in for the server's WebSocket on a page without a server: a worker that has the search and the network.
 * Events: `open`, `message`, `close`. */
export class LocalSocket extends EventTarget {
  longest = Infinity; // bytes of a message

  constructor() {
    super();
    this.isLast = true; // none is to follow one that cannot begin
    this.readyState = WebSocket.CONNECTING;
    this.worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
    // It says `true` when it is ready, lines of JSON, and `null` when it cannot go on.
    this.worker.addEventListener("message", ({ data }) => {
      if (data === null) return this.close();
      if (data !== true) return this.dispatchEvent(new MessageEvent("message", { data }));
      this.readyState = WebSocket.OPEN;
      this.isLast = ++starts === MOST_STARTS;
      this.dispatchEvent(new Event("open"));
    });
    this.worker.addEventListener("error", () => this.close());
  }

  send(text) {
    this.worker.postMessage(text);
  }

  close() {
    if (this.readyState === WebSocket.CLOSED) return;
    this.readyState = WebSocket.CLOSED;
    this.worker.terminate();
    this.dispatchEvent(new Event("close"));
  }
}

/** Asks by plain HTTP, with a body by POST. It fails with what the server said. */
export async function fetched(address, body) {
  const post = { method: "POST", headers: { "Content-Type": "application/json" }, body };
  const response = await fetch(address, body === undefined ? {} : post).catch(() => {
    throw new Busy("the server cannot be reached");
  });
  // What stands before the server may refuse in its own words.
  const answer = await response.json().catch(() => ({ error: `the server answered ${response.status}` }));
  if ([429, 503].includes(response.status)) throw new Busy(answer.error);
  if (!response.ok) throw refusal(answer);
  return answer;
}

function refusal({ error, retryAfter, isRollDue }) {
  if (isRollDue) return new RollDue(error);
  return retryAfter ? new Busy(error) : new Error(error);
}

/** There is nothing to search: dice are to be thrown. */
export class RollDue extends Error {}

/** The server has too much to do, or it ends. */
export class Busy extends Error {}

/** The connection ended before the answer came. */
export class Lost extends Error {
  message = "the connection to the server is lost";
}
