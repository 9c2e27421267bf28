// How does a game come in and go out? As a text that the server reads and writes, or as a record of this page.

import { pictureAddress } from "./dom.js";
import { Game } from "./game.js";
import { boxOf } from "./position.js";

const WIDTH = 1200; // of a picture as dots

/**
 * Reads a text of any kind.
 * @param {string} text
 * @param {(query: Record<string, unknown>) => Promise<any>} ask asks the server
 * @returns {Promise<{game: Game, name: string | null, leftOut: string[]}>} the game, the game's name if the text says
 *   it, and why its lines end early or are missing
 */
export async function readGame(text, ask) {
  const whole = text.trim();
  if (!whole.startsWith("{")) {
    const read = await ask({ action: "read", text: whole });
    return { game: Game.fromNodes(read), name: null, leftOut: read.leftOut };
  }
  let record;
  try {
    record = JSON.parse(whole);
  } catch {
    throw new Error("this is neither JSON nor moves nor a position");
  }
  if (!Array.isArray(record.nodes)) throw new Error("this is no record of a game");
  const { position = null, nodes, notes = {} } = record;
  const read = await ask({ action: "read", position, nodes, notes });
  const isWhole = Array.isArray(record.ended) && read.nodes.length === nodes.length;
  const ended = isWhole ? record.ended.filter(isEnd) : [];
  const game = Game.fromNodes({ ...record, nodes: read.nodes, notes: read.notes, ended });
  return { game, name: typeof record.game === "string" ? record.game : null, leftOut: [] };
}

/** Whether a record says so how a game ended. @param {any} one */
function isEnd(one) {
  return Array.isArray(one) && Number.isInteger(one[0]) && [1, 0, -1].includes(one[1]);
}

/**
 * Writes a game with its variations in the game's notation, and with how the players ended its main line.
 * @param {Game} game
 * @param {string | null} format of the notation
 * @param {(query: Record<string, unknown>) => Promise<any>} ask asks the server
 * @returns {Promise<string>}
 */
export async function writeGame(game, format, ask) {
  const { ended, ...record } = game.toNodes();
  const result = record.result ?? resultOf(game.end.ended, format);
  return (await ask({ action: "write", ...record, ...(result === null ? {} : { result }) })).text;
}

/**
 * How the players ended a game, as its notation says it.
 * @param {import("./game.js").Position["ended"]} ended
 * @param {string | null} format
 * @returns {string | null}
 */
function resultOf(ended, format) {
  if (ended === null) return null;
  if (format === "pgn") return ended.outcome > 0 ? "1-0" : "0-1";
  if (ended.outcome === 0) return "0";
  const [, points] = /^by ([\d.]+)/.exec(ended.why) ?? [];
  return `${ended.outcome > 0 ? "B" : "W"}+${points ?? (ended.why === "on time" ? "T" : "R")}`;
}

/** Puts a text on the clipboard, also where a page that is not secure has no access to it. @param {string} text */
export async function copyText(text) {
  if (navigator.clipboard !== undefined) return navigator.clipboard.writeText(text);
  const field = document.createElement("textarea");
  field.value = text;
  (document.querySelector("dialog[open]") ?? document.body).append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}

/** A picture as dots, as an address of a file. @param {string} svg @returns {Promise<string>} */
export async function pngOf(svg) {
  const [, , width, height] = boxOf(svg);
  const image = new Image();
  image.src = pictureAddress(svg);
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [WIDTH, Math.round((WIDTH * height) / width)];
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  return canvas.toDataURL("image/png");
}

/**
 * Hands a text to the person as a file.
 * @param {string} name
 * @param {string} text
 */
export function saveText(name, text) {
  save(name, `data:text/plain;charset=utf-8,${encodeURIComponent(text)}`);
}

/** Hands a file to the person. @param {string} name @param {string} address */
export function save(name, address) {
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
}
