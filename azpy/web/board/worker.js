// Who searches on a page without a server? This worker: it takes queries as the server's WebSocket does.

import { Engine } from "./engine.js";

const SLICE = 20; // milliseconds of search between two looks for messages

let engine = null;
let isWorking = false;
const turns = new MessageChannel(); // a timer would wait 4 ms each time

const told = (error) => JSON.stringify({ error: error instanceof Error ? error.message : String(error) });

async function file(name) {
  const response = await fetch(new URL(name, import.meta.url));
  if (!response.ok) throw new Error(`${name.replace("../", "")} is missing: the host answered ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
}

async function open() {
  const player = JSON.parse(new TextDecoder().decode(await file("../player.json")));
  const weights = player.network === null ? Promise.resolve(new Uint8Array()) : file("../weights.safetensors");
  const [program, numbers] = await Promise.all([file("azpy.wasm.gz"), weights]);
  [player.seed] = crypto.getRandomValues(new Uint32Array(1));
  engine = await Engine.open(program, JSON.stringify(player), numbers);
}

const say = (lines) => lines.forEach((line) => postMessage(line));

/** Says what the engine answers, or that it is no more. */
function attempt(act) {
  if (engine === null) return;
  try {
    act();
  } catch (error) {
    const [why = told(`the search stopped, perhaps because the page ran out of memory: ${error}`)] = engine.said();
    engine = null;
    postMessage(why);
    postMessage(null);
  }
}

function work() {
  let isBusy = true;
  const until = performance.now() + SLICE;
  attempt(() => {
    for (let now = performance.now(); isBusy && engine !== null && now < until; now = performance.now()) {
      const done = engine.step(now);
      isBusy = done.isBusy;
      say(done.lines);
    }
  });
  isWorking = isBusy && engine !== null;
  if (isWorking) turns.port1.postMessage(null);
}

turns.port2.onmessage = work;
addEventListener("message", ({ data }) => {
  attempt(() => say(engine.ask(data)));
  if (!isWorking) {
    isWorking = true;
    turns.port1.postMessage(null);
  }
});
open().then(
  () => postMessage(true),
  (error) => {
    const why = error instanceof Error ? error.message : error;
    postMessage(told(`This page cannot play (${why}). Reload it, or have it exported again.`));
    postMessage(null);
  },
);
