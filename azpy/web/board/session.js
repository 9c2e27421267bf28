// How does a page without a server, or Node, run the search? In slices, between which it takes messages.

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const SLICE = 20; // milliseconds of search between two looks for messages

/** azpy's WebAssembly with one player, and the searches for it. It has no thread of its own: `step` goes on with them.
 * Texts and weights pass through its memory (rust/web/src/ffi.rs). */
export class Engine {
  /** Opens a player of its JSON, as `az-export --web` writes it, and the weights of its network, empty without one. It
   * fails with the reason if the player cannot be opened. */
  static async open(packed, player, weights) {
    const isPacked = packed[0] === 0x1f && packed[1] === 0x8b; // a host may have unpacked it
    const unpacked = () => new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip")));
    const program = isPacked ? await unpacked().arrayBuffer() : packed;
    const { instance } = await WebAssembly.instantiate(program, {});
    const engine = Object.assign(new Engine(), { functions: instance.exports });
    const text = encoder.encode(player);
    engine.write(text, weights);
    if (!engine.functions.azpy_open(text.length)) throw new Error(JSON.parse(engine.said()[0]).error);
    return engine;
  }

  write(...parts) {
    const length = parts.reduce((sum, part) => sum + part.length, 0);
    let at = this.functions.azpy_room(length) >>> 0;
    const memory = new Uint8Array(this.functions.memory.buffer); // another one whenever it has grown
    for (const part of parts) {
      memory.set(part, at);
      at += part.length;
    }
  }

  /** What the last call said, as lines of JSON. */
  said() {
    const length = this.functions.azpy_length() >>> 0;
    if (length === 0) return [];
    return decoder.decode(new Uint8Array(this.functions.memory.buffer, this.functions.azpy_said() >>> 0, length)).split("\n");
  }

  /** Takes a query or an action, as JSON. */
  ask(text) {
    this.write(encoder.encode(text));
    this.functions.azpy_ask();
  }

  /** Goes on with the searches for a moment. Returns whether there is more to do. */
  step(now) {
    return this.functions.azpy_step(now) !== 0;
  }
}

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
    const player = JSON.parse(decoder.decode(await this.file("../player.json")));
    const weights = player.network === null ? Promise.resolve(new Uint8Array()) : this.file("../weights.safetensors");
    const [program, numbers] = await Promise.all([this.file("azpy.wasm.gz"), weights]);
    [player.seed] = crypto.getRandomValues(new Uint32Array(1));
    this.engine = await Engine.open(program, JSON.stringify(player), numbers);
  }

  /** Takes a query or an action, as JSON. */
  ask(text) {
    this.attempt((engine) => engine.ask(text));
    if (this.isWorking) return;
    this.isWorking = true;
    this.turn();
  }

  work() {
    const until = performance.now() + SLICE;
    do {
      this.isWorking = false;
      this.attempt((engine) => (this.isWorking = engine.step(performance.now())));
    } while (this.isWorking && performance.now() < until);
    if (this.isWorking) this.turn();
  }

  /** Says what the engine answers, or that it is no more. */
  attempt(act) {
    if (this.engine === null) return;
    try {
      act(this.engine);
      this.engine.said().forEach(this.say);
    } catch (error) {
      const stopped = `the search stopped, perhaps because the page ran out of memory: ${error}`;
      const [why = JSON.stringify({ error: stopped })] = this.engine.said();
      this.engine = null;
      this.say(why);
      this.say(null);
    }
  }
}
