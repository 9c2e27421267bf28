// Asks the program of a page without a server: `node ask_page.mjs FOLDER` reads queries from its input, a line of JSON
// each, and writes all answers to one before it takes the next. Queries in a list are asked at once.

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const folder = process.argv[2];
const { Engine } = await import(pathToFileURL(`${folder}/board/session.js`).href);
const player = JSON.parse(readFileSync(`${folder}/player.json`, "utf8"));
const weights = player.network === null ? new Uint8Array() : readFileSync(`${folder}/weights.safetensors`);
const engine = await Engine.open(readFileSync(`${folder}/board/azpy.wasm.gz`), JSON.stringify(player), weights);
for await (const line of createInterface({ input: process.stdin })) {
  const answers = [];
  for (const query of [JSON.parse(line)].flat()) {
    engine.ask(JSON.stringify(query));
    answers.push(...engine.said());
  }
  for (let isBusy = true; isBusy;) {
    isBusy = engine.step(performance.now());
    answers.push(...engine.said());
  }
  console.log(`[${answers.join(",")}]`);
}
