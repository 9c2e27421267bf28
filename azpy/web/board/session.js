// How does a page without a server, or Node, run the search? In slices, between which it takes messages.

import { Engine } from "./engine.js";

const SLICE = 20; // milliseconds of search between two looks for messages

const told = (error) => JSON.stringify({ error: error instanceof Error ? error.message : String(error) });

/** Returns what has `act` called after the messages that wait. */
function later(act) {
  if (globalThis.setImmediate !== undefined) return () => setImmediate(act); // Node's channels hold up its timers
  const turns = new MessageChannel(); // a page's timer would wait 4 ms each time
  turns.port2.onmessage = act;
  return () => turns.port1.postMessage(null);
}

/** One player: takes queries as the server's WebSocket does. */
export class Session {
  /** `file` reads a file of the player by its path from this script; `say` gets lines of JSON, and null when the session
   * cannot go on. */
  constructor(file, say) {
    [this.file, this.say] = [file, say];
    this.engine = null;
    this.isWorking = false;
    this.turn = later(() => this.work());
  }

  /** Resolves once it takes queries; fails with the reason. */
  async open() {
    const player = JSON.parse(new TextDecoder().decode(await this.file("../player.json")));
    const weights = player.network === null ? Promise.resolve(new Uint8Array()) : this.file("../weights.safetensors");
    const [program, numbers] = await Promise.all([this.file("azpy.wasm.gz"), weights]);
    [player.seed] = crypto.getRandomValues(new Uint32Array(1));
    this.engine = await Engine.open(program, JSON.stringify(player), numbers);
  }

  /** Takes a query or an action, as JSON. */
  ask(text) {
    this.attempt((engine) => engine.ask(text).forEach(this.say));
    if (!this.isWorking) this.goOn(true);
  }

  goOn(isWorking) {
    this.isWorking = isWorking;
    if (isWorking) this.turn();
  }

  work() {
    let isBusy = true;
    const until = performance.now() + SLICE;
    for (let now = performance.now(); isBusy && this.engine !== null && now < until; now = performance.now()) {
      this.attempt((engine) => {
        const done = engine.step(now);
        isBusy = done.isBusy;
        done.lines.forEach(this.say);
      });
    }
    this.goOn(isBusy && this.engine !== null);
  }

  /** Says what the engine answers, or that it is no more. */
  attempt(act) {
    if (this.engine === null) return;
    try {
      act(this.engine);
    } catch (error) {
      const [why = told(`the search stopped, perhaps because the page ran out of memory: ${error}`)] = this.engine.said();
      this.engine = null;
      this.say(why);
      this.say(null);
    }
  }
}
