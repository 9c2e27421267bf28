// How is azpy's WebAssembly called? Texts and weights pass through its memory (rust/web/src/ffi.rs).

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** One player, and the searches for it. It has no thread of its own: `step` goes on with them. */
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

  /** Takes a query or an action, as JSON. Returns what is answered at once. */
  ask(text) {
    this.write(encoder.encode(text));
    this.functions.azpy_ask();
    return this.said();
  }

  /** Goes on with the searches for a moment. Returns whether there is more to do, and answers and reports. */
  step(now) {
    const isBusy = this.functions.azpy_step(now) !== 0;
    return { isBusy, lines: this.said() };
  }
}
