// What does the game's text say besides the moves? Who played where, and comments.

import { byId, write } from "./dom.js";
import { seats } from "./seats.js";

/** PGN's and SGF's names of what people look for first, and how they are told. */
const TOLD = { Event: "", EV: "", Date: "", DT: "", Site: "", PC: "", Round: "round ", RO: "round ", HA: "handicap " };
const RESULTS = { "1-0": ["1", "0"], "0-1": ["0", "1"], "1/2-1/2": ["½", "½"] };

/** `onComment` gets what the person says of the current position. */
export function bindComment(onComment) {
  byId("comment").addEventListener("input", () => onComment(byId("comment").value));
}

export function showComment(position) {
  const field = byId("comment");
  if (field.value !== position.comment) field.value = position.comment;
  write(byId("noted"), position.comment);
}

/** Names and result beside the board, and the rest above the moves. */
export function showHeaders(about, komi) {
  const { players, ranks, result, tags = [] } = about ?? {};
  const scores = scoresOf(result ?? null);
  for (const player of seats("named").keys()) {
    const [name, rank] = [players?.[player], ranks?.[player]];
    write(byId(`named_${player}`), [name, rank && `(${rank})`].filter(Boolean).join(" "));
    write(byId(`score_${player}`), scores[player] ?? "");
  }
  const told = tags.filter(([name, value]) => Object.hasOwn(TOLD, name) && !/^[?.]*$/.test(value));
  const words = told.map(([name, value]) => TOLD[name] + value);
  if (komi !== null) words.push(`komi ${komi}`);
  write(byId("headers"), [...words, ...(result ? [`result ${result}`] : [])].join(" · "));
}

/** What each player has of a result. */
function scoresOf(result) {
  if (result === null) return ["", ""];
  const won = /^([BW])\+(.*)$/.exec(result);
  if (won !== null) return won[1] === "B" ? [`+${won[2]}`, ""] : ["", `+${won[2]}`];
  return Object.hasOwn(RESULTS, result) ? RESULTS[result] : ["", ""];
}
