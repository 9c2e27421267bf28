// Who searches on a page without a server? This worker: it takes queries as the server's WebSocket does.

import { Session } from "./session.js";

async function file(name) {
  const response = await fetch(new URL(name, import.meta.url));
  if (!response.ok) throw new Error(`${name.replace("../", "")} is missing: the host answered ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
}

const session = new Session(file, (line) => postMessage(line));
addEventListener("message", ({ data }) => session.ask(data));
session.open().then(
  () => postMessage(true),
  ({ message }) => {
    postMessage(JSON.stringify({ error: `This page cannot play (${message}). Reload it, or have it exported again.` }));
    postMessage(null);
  },
);
