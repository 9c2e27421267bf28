// How does a game come in and go out? As a text that the server reads and writes, or as a record of this page.

import { Game } from "./game.js";

/**
 * Reads a text of any kind.
 * @param {string} text
 * @param {(query: Record<string, unknown>) => Promise<any>} ask asks the server
 * @param {(game: Game, moves: string[]) => Promise<unknown>} look asks the server for a position
 * @returns {Promise<{game: Game, name: string | null, leftOut: string[]}>} the game, the game's name if the text says
 *   it, and why lines end early, or are not there
 */
export async function readGame(text, ask, look) {
  const whole = text.trim();
  if (whole.startsWith("{")) return { ...(await readRecord(whole, look)), leftOut: [] };
  const read = await ask({ action: "read", text: whole });
  return { game: Game.fromNodes(read), name: null, leftOut: read.leftOut };
}

/**
 * Writes a game with its variations in the game's notation.
 * @param {Game} game
 * @param {(query: Record<string, unknown>) => Promise<any>} ask asks the server
 * @returns {Promise<string>}
 */
export async function writeGame(game, ask) {
  return (await ask({ action: "write", ...game.toNodes() })).text;
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
