// What are the players called?

/** @param {string[] | null} names of the game's sides; null for none @param {number} players how many there are
 * @returns {string[]} for use within a sentence */
export function sides(names, players) {
  if (names === null && players === 1) return ["player"];
  return names ?? Array.from({ length: players }, (_, player) => `player ${player}`);
}

/** The colors of the pieces in azpy's pictures, by player. */
const COLORS = ["red", "blue", "green", "yellow", "purple", "brown"];

/** The class of a player's color, which is that of the pieces; empty where their color is not known. @param {string}
 * name of the player @param {boolean} isZeroSum whether one bar tells the value of two players */
export function colorOf(name, player, isZeroSum) {
  const word = name.toLowerCase();
  if ([...COLORS, "white", "black"].includes(word)) return word;
  return isZeroSum ? "" : COLORS[player];
}

const FIGURES = { q: "\u265b", r: "\u265c", b: "\u265d", n: "\u265e", p: "\u265f" };

const WHITE = { q: "\u2655", r: "\u2656", b: "\u2657", n: "\u2658", p: "\u2659" };

/** Men that were captured: figures of chess, else their number. */
export function toldMen(men) {
  const figures = [...men].map((man) => (man < "a" ? WHITE : FIGURES)[man.toLowerCase()]);
  if (men === "" || figures.includes(undefined)) return men === "" ? "" : `${men.length} captured`;
  return figures.map((figure) => `${figure}\ufe0e`).join("");
}

/** A text as the beginning of a sentence. */
export function upper(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** What people call a game: "go(size=9)" is "Go, size 9". @param {string} game its name, with its parameters */
export function titleOf(game) {
  const [, name, parameters = ""] = /^([^(]*)(?:\((.*)\))?/.exec(game) ?? ["", game];
  const words = name.replace(/^.*:/, "").split("_").map((word) => (/^(of|for)$/.test(word) ? word : upper(word)));
  return [words.join(" "), ...parameters.split(",").filter(Boolean)].join(", ").replaceAll("=", " ");
}
