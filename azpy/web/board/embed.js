// Is this page the board of another page? Then it shows the board alone, and tells the other page what happens.

const asked = new URLSearchParams(location.search);

/** Whether <azpy-board> shows this page. */
export const isEmbedded = asked.has("embed");

if (isEmbedded) {
  document.documentElement.classList.add("embed");
  new ResizeObserver(() => tell("size", { height: document.body.offsetHeight })).observe(document.body);
}

if (asked.has("offline")) navigator.serviceWorker?.register("offline.js").catch(() => {}); // no network, or no space

/** Tells the page around this one. */
export function tell(what, detail) {
  if (isEmbedded) parent.postMessage({ azpy: what, ...detail }, "*");
}

/** The side of the person as the tag says it; the first one without it. */
export function sideAsked() {
  const side = asked.get("side") ?? "first";
  return { first: 0, second: 1 }[side] ?? Number(side);
}

/** Who plays, and how strongly, as the tag says it. */
export function seatAsAsked(settings) {
  if (!isEmbedded) return;
  const { name } = settings.model;
  const isPerson = (player) => asked.get("side") === "all" || player === sideAsked();
  const players = settings.names.map((_, player) => (isPerson(player) ? "" : name));
  settings.decide({ ...settings.chosen, players, strength: asked.get("level") ?? "" });
}

/** Hears when the page around this one wants a new game. */
export function hearOf(onNew) {
  addEventListener("message", ({ source, data }) => {
    if (isEmbedded && source === parent && data?.azpy === "new") onNew();
  });
}
