// How does a game come in and go out? As a position, as moves, as another program's record, or as one of this page.

import { Game } from "./game.js";
import { readPgn, readSgf } from "./notations.js";
import { named } from "./position.js";
import { kind } from "./sides.js";

/**
 * Reads a text of any kind.
 * @param {string} text
 * @param {string} name of the game
 * @param {(game: Game, moves: string[]) => Promise<import("./position.js").Shown>} look asks the server for a position
 * @returns {Promise<{game: Game, name: string | null}>} the game, and the game's name if the text says it
 */
export async function readGame(text, name, look) {
  const whole = text.trim();
  if (whole === "") throw new Error("there is no text");
  if (whole.startsWith("{")) return readRecord(whole, look);
  const isGo = kind(name) === "go";
  const isChess = kind(name) === "chess";
  const sgf = isGo && /^\(\s*;/.test(whole) ? readSgf(whole) : null;
  if (sgf !== null) return { game: await readLine(new Game(sgf.start), sgf.moves, look), name: null };
  if (isChess && /^(\[|1\s*\.)/.test(whole)) {
    const pgn = readPgn(whole);
    return { game: await readLine(new Game(pgn.start), pgn.moves, look), name: null };
  }
  const found = await readMoves(new Game(), whole, look);
  if (found.left === "") return { game: found.game, name: null };
  // Chess writes the moves behind the position where they began.
  const [start, ...moves] = whole.split(/\smoves\s/);
  try {
    return { game: await readLine(new Game(start), moves.join(" "), look), name: null };
  } catch (error) {
    throw found.game.current.ply === 0 ? error : illegal(found);
  }
}

/**
 * Plays all moves of a text.
 * @param {Game} game
 * @param {string} text
 * @param {(game: Game, moves: string[]) => Promise<import("./position.js").Shown>} look
 */
async function readLine(game, text, look) {
  const found = await readMoves(game, text, look);
  if (found.left !== "") throw illegal(found);
  return found.game;
}

/** @param {{game: Game, left: string}} found */
function illegal({ game, left }) {
  return new Error(`after ${game.current.ply} moves, ${left.slice(0, 40)} is not legal`);
}

/**
 * Plays the moves of a text as far as they are legal.
 * @param {Game} game
 * @param {string} text
 * @param {(game: Game, moves: string[]) => Promise<import("./position.js").Shown>} look
 */
async function readMoves(game, text, look) {
  let left = text.trim();
  game.root.shown = await look(game, []);
  while (left !== "") {
    const shown = game.current.shown;
    let found = named(shown, left);
    const number = /^[0-9]+\.+\s*/.exec(left);
    if (found === null && number !== null) {
      // Numbers of moves, as chess has them, are no moves.
      left = left.slice(number[0].length);
      found = named(shown, left);
    }
    if (found === null) break;
    left = left.slice(found.length).trim();
    game.play(found.name);
    game.current.shown = await look(game, game.current.moves());
  }
  return { game, left };
}

/** @param {string} text @param {(game: Game, moves: string[]) => Promise<unknown>} look */
async function readRecord(text, look) {
  let object;
  try {
    object = JSON.parse(text);
  } catch {
    throw new Error("this is neither JSON nor moves nor a position");
  }
  const game = Game.fromObject(object);
  // The end of each line is legal only if all moves before it are.
  for (const leaf of game.leaves()) await look(game, leaf.moves());
  return { game, name: typeof object.game === "string" ? object.game : null };
}

/**
 * Hands a text to the person as a file.
 * @param {string} name
 * @param {string} text
 */
export function saveText(name, text) {
  const link = document.createElement("a");
  link.href = `data:text/plain;charset=utf-8,${encodeURIComponent(text)}`;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
}
