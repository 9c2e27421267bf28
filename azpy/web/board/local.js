// What stands in for the server's WebSocket on a page without a server? A worker that has the search and the network.

const MOST_STARTS = 3; // of a worker that fails: each loads the program anew

let starts = 0;

/** As a WebSocket, as far as `Connection` uses one. Events: `open`, `message`, `close`. */
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
