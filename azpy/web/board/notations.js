// Which moves does a text of another program hold? The main line of SGF for Go and of PGN for chess.

const COLUMNS = "ABCDEFGHJKLMNOPQRSTUVWXYZ";

/**
 * The main line of a game of Go.
 * @param {string} text SGF
 * @returns {{start: string, moves: string} | null} where it begins, as SGF, and the names of the moves; null if the text
 *   is not a line of moves in turns
 */
export function readSgf(text) {
  const nodes = mainLine(text).map(propertiesOf);
  const [root, ...others] = nodes;
  if (root === undefined || root.properties.has("B") || root.properties.has("W")) return null;
  const size = Number(root.properties.get("SZ") ?? 19);
  const names = [];
  let color = root.properties.get("PL")?.charAt(0).toUpperCase() ?? null;
  const first = others.find(({ properties }) => properties.has("B") || properties.has("W"));
  const start = color === null && first?.properties.has("W") ? `(;${root.text}PL[W])` : `(;${root.text})`;
  for (const { properties } of others) {
    if (properties.has("AB") || properties.has("AW") || properties.has("AE")) return null;
    const played = ["B", "W"].find((one) => properties.has(one));
    if (played === undefined) continue;
    if (color !== null && played !== color) return null;
    color = played === "B" ? "W" : "B";
    const [x, y] = [...(properties.get(played) ?? "")].map((letter) => letter.charCodeAt(0) - 97);
    names.push(x === undefined || x >= size ? "pass" : `${COLUMNS[x]}${size - y}`);
  }
  return { start, moves: names.join(" ") };
}

/** The nodes up to the first end of a variation. @param {string} text @returns {string[]} */
function mainLine(text) {
  const nodes = [];
  for (let at = 0, node = -1, isText = false; at < text.length; at += 1) {
    const letter = text[at];
    if (isText && letter === "\\") at += 1;
    else if (letter === "[" && !isText) isText = true;
    else if (letter === "]") isText = false;
    else if (!isText && (letter === ";" || letter === "(" || letter === ")")) {
      if (node >= 0) nodes.push(text.slice(node, at).trim());
      node = letter === ";" ? at + 1 : -1;
      if (letter === ")") break;
    }
  }
  return nodes;
}

/** @param {string} text of a node @returns {{text: string, properties: Map<string, string>}} the first value of each */
function propertiesOf(text) {
  const properties = new Map();
  for (const [, name, value] of text.matchAll(/([A-Z]+)\s*\[((?:\\[\s\S]|[^\]\\])*)\]/g)) {
    if (!properties.has(name)) properties.set(name, value);
  }
  return { text, properties };
}

/**
 * The main line of a game of chess.
 * @param {string} text PGN
 * @returns {{start: string | null, moves: string}} where it begins, as FEN, and the moves
 */
export function readPgn(text) {
  const start = /^\s*\[FEN\s+"([^"]*)"\]/im.exec(text)?.[1] ?? null;
  let moves = text.replace(/^\s*\[[^\]]*\]\s*$/gm, "").replace(/\{[^}]*\}/g, " ").replace(/;.*$/gm, " ");
  for (let before = ""; before !== moves; ) [before, moves] = [moves, moves.replace(/\([^()]*\)/g, " ")];
  moves = moves.replace(/\$[0-9]+|[!?]+/g, " ").replace(/(1-0|0-1|1\/2-1\/2|\*)\s*$/, "");
  return { start, moves: moves.trim() };
}
