// What are the players called?

/** What the sides are called within a sentence, by the game's own names if it has some. */
export function sides(names, players) {
  if (names === null && players === 1) return ["player"];
  return names ?? Array.from({ length: players }, (_, player) => `player ${player}`);
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
