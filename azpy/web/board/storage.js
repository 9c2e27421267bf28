// What does this browser keep? Objects by name, for this tab and for tabs that are opened later, where it allows it.

import { isEmbedded } from "./embed.js";

// Where objects are kept; a browser may refuse to name such a place.
export const TAB = isEmbedded ? [] : [() => sessionStorage]; // a board in another page begins anew
export const BROWSER = isEmbedded ? [] : [() => localStorage];
const BOTH = [...TAB, ...BROWSER];

/** Keeps an object. A place that has no room keeps what it had. Returns whether each place took it. */
export function store(key, value, places = BOTH) {
  let isTaken = true;
  for (const place of places) {
    try {
      place().setItem(key, JSON.stringify(value));
    } catch {
      isTaken = false;
    }
  }
  return isTaken;
}

/** What the first place keeps that has it; null for nothing. */
export function stored(key, places = BOTH) {
  try {
    return JSON.parse(places.map((place) => place().getItem(key)).find((text) => text !== null) ?? "null");
  } catch {
    return null;
  }
}
