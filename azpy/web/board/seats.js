// Who sits at the game, and what are they called? A row beside the board, and a choice in the dialog of a new game, for
// each of one to six players.

import { byId } from "./dom.js";

/** The elements of a part, such as "clock", from that of player 0 on. */
export function seats(name) {
  const found = [];
  while (byId(`${name}_${found.length}`) !== null) found.push(byId(`${name}_${found.length}`));
  return found;
}

const IN_A_ROW = 3; // seats above the board

/** Shows as many seats as a game has players. Those behind the second one are made like it. */
export function seat(players) {
  byId("main").style.setProperty("--rows", `${Math.max(1, Math.ceil((players - 1) / IN_A_ROW))}`);
  for (let player = seats("side").length; player < players; player += 1) {
    byId(`side_${player - 1}`).after(copied("side", player));
  }
  for (const [player, part] of seats("side").entries()) part.hidden = player >= players;
}

/** The choices of who plays, one for each player of a game. */
export function seatChoices(players) {
  for (let player = seats("player").length; player < players; player += 1) {
    byId(`player_${player - 1}`).after(copied("label", player), copied("player", player));
    byId(`label_${player}`).htmlFor = `player_${player}`;
  }
  return seats("player").slice(0, players);
}

function copied(name, player) {
  const made = byId(`${name}_1`).cloneNode(true);
  for (const one of [made, ...made.querySelectorAll("[id]")]) one.id = one.id.replace(/_1$/, `_${player}`);
  return made;
}

/** What the sides of a player's game are called within a sentence, by the game's own names if it has some. */
export function namesOf({ sideNames, numPlayers = 2 }) {
  if (sideNames === null && numPlayers === 1) return ["player"];
  return sideNames ?? Array.from({ length: numPlayers }, (_, player) => `player ${player}`);
}

/** The colors of the pieces in azpy's pictures, by player. */
const COLORS = ["red", "blue", "green", "yellow", "purple", "brown"];

/** The class of a player's color, which is that of the pieces; empty where their color is not known. */
export function colorOf(name, player, isZeroSum) {
  const word = name.toLowerCase();
  if ([...COLORS, "white", "black"].includes(word)) return word;
  return isZeroSum ? "" : COLORS[player];
}

/** Men that were captured: figures of chess, else their number. */
export function toldMen(men) {
  const figures = [...men].map((man) => "KQRBNPkqrbnp".indexOf(man));
  if (figures.includes(-1)) return `${men.length} captured`;
  return figures.map((figure) => `${String.fromCharCode(0x2654 + figure)}\ufe0e`).join("");
}

export function upper(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** What people call a game: "go(size=9)" is "Go, size 9". */
export function titleOf(game) {
  const [, name, parameters = ""] = /^([^(]*)(?:\((.*)\))?/.exec(game) ?? ["", game];
  const words = name.replace(/^.*:/, "").split("_").map((word) => (/^(of|for)$/.test(word) ? word : upper(word)));
  return [words.join(" "), ...parameters.split(",").filter(Boolean)].join(", ").replaceAll("=", " ");
}
