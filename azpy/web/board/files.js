// How does a game come in and go out? As a text that the server reads and writes, or as a record of this page.

import { make, pictureAddress } from "./dom.js";
import { Game } from "./game.js";
import { boxOf } from "./position.js";

const WIDTH = 1200; // of a picture as dots
const UTF_16 = { "255,254": "utf-16le", "254,255": "utf-16be" }; // by the mark that begins a file

/** The text of a file: UTF-16 if it is marked so, else UTF-8, else what SGF's CA names, else Latin-1. */
export function decoded(bytes) {
  const latin = new TextDecoder("latin1").decode(bytes);
  const stated = /CA\s*\[\s*([\w-]{1,20})\s*\]/.exec(latin.slice(0, 4096))?.[1] ?? "latin1";
  for (const name of [UTF_16[String(bytes.slice(0, 2))] ?? "utf-8", stated]) {
    try {
      return new TextDecoder(name, { fatal: /^utf-?8$/i.test(name) }).decode(bytes);
    } catch {
      // These bytes are not UTF-8, or no browser knows this encoding.
    }
  }
  return latin;
}

/** The games that a text holds, as files of many games are written, each named by its players, result and event. */
export function gamesIn(text, format) {
  const isRecord = /^\s*\{\s*"/.test(text);
  const cuts = isRecord ? [] : format === "pgn" ? cutsOfPgn(text) : format === "sgf" ? cutsOfSgf(text) : [];
  const pieces = [0, ...cuts].map((begin, index) => text.slice(begin, cuts[index]));
  return pieces.map((piece, index) => ({ name: `${index + 1}. ${nameOf(piece, format)}`, text: piece }));
}

/** Parts of PGN: a comment, a line for programs, a tag or a line that begins as one, a bracket of a variation, a
 * word. */
const PGN = /\{[^}]*\}?|;.*|^%.*|\[\s*\w+\s*"(?:\\.|[^"\\\n])*"\s*\]|\[.*|[()]|[^\s(){};[\]]+/gm;

/** Where games after the first one begin: after a result, or at a tag behind moves. */
function cutsOfPgn(text) {
  const cuts = [];
  let [isOver, hasMoves, depth] = [false, false, 0];
  for (const { 0: token, index } of text.matchAll(PGN)) {
    if (/^[{;%]/.test(token)) continue;
    const isTag = token.startsWith("[");
    if (isOver || (isTag && hasMoves)) {
      cuts.push(index);
      [isOver, hasMoves, depth] = [false, false, 0];
    }
    if (isTag) continue;
    hasMoves = true;
    if (token === "(") ++depth;
    else if (token === ")") --depth;
    else isOver = depth <= 0 && /^(1-0|0-1|1\/2-1\/2|\*)$/.test(token);
  }
  return cuts;
}

/** Where games after the first one begin: at a bracket outside of all others. */
function cutsOfSgf(text) {
  const begins = [];
  let depth = 0;
  for (const { 0: token, index } of text.matchAll(/\[(?:\\[^]|[^\]\\])*\]?|[()]/g)) {
    if (token === "(" && depth++ === 0) begins.push(index);
    else if (token === ")") depth = Math.max(0, depth - 1);
  }
  return begins.slice(1);
}

/** What a game says of itself, in a few words. */
function nameOf(text, format) {
  const tag = (pgn, sgf) => {
    const ofPgn = `(?:^|\\])\\s*\\[\\s*${pgn}\\s+"((?:\\\\.|[^"\\\\])*)"`;
    const ofSgf = `[;\\]\\s]${sgf}\\s*\\[((?:\\\\[^]|[^\\]\\\\])*)`;
    const found = new RegExp(format === "pgn" ? ofPgn : ofSgf, "m").exec(text)?.[1] ?? "";
    return ["?", "????.??.??", "*"].includes(found) ? "" : found.replace(/\\(.)/g, "$1");
  };
  const sides = [tag("White", "PB"), tag("Black", "PW")].map((side) => side || "?");
  const rest = [tag("Result", "RE"), tag("Event", "EV"), tag("Round", "RO"), tag("Date", "DT")];
  return [sides.join(" against "), ...rest.filter((part) => part !== "")].join(", ");
}

/** Has the server read a text of any kind. Gives the game, its name if the text says it, and why lines are left out. */
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
    throw new Error("expected JSON, moves or a position");
  }
  if (!Array.isArray(record.nodes)) throw new Error("this JSON is not a saved game");
  const { position = null, nodes, notes = {}, ended = [] } = record;
  const read = await ask({ action: "read", position, nodes, notes });
  const isWhole = read.nodes.length === nodes.length;
  const game = Game.fromNodes({ ...record, nodes: read.nodes, notes: read.notes, ended: isWhole ? ended : [] });
  return { game, name: typeof record.game === "string" ? record.game : null, leftOut: [] };
}

/** Has the server write a game with its variations in the game's notation, and with how the players ended its main line.
 * A game that began on this board says who plays it, when, and by which clock. */
export async function writeGame(game, format, players, clock, ask) {
  const { ended, ...record } = game.toNodes();
  const result = record.result ?? resultOf(game.end.ended, format);
  const own = game.begun === null ? {} : { players, tags: [...(record.tags ?? []), ...tagsOf(game, format, clock)] };
  return (await ask({ action: "write", ...record, ...own, ...(result === null ? {} : { result }) })).text;
}

/** What a notation says of a game that began on this board. */
function tagsOf({ begun, end }, format, clock) {
  const date = new Date(begun ?? 0).toLocaleDateString("sv"); // as 2026-11-28, in this browser's time zone
  const { limit = null, more = 0, periods = 0, period = 0 } = clock ?? {};
  const [seconds, each] = [`${(limit ?? 0) / 1000}`, more / 1000];
  if (format === "pgn") {
    const how = end.ended?.why === "on time" ? "time forfeit" : end.outcome === null ? "unterminated" : "normal";
    const timed = periods > 0 ? [] : [["TimeControl", limit === null ? "-" : `${seconds}${each > 0 ? `+${each}` : ""}`]];
    return [["Date", date.replaceAll("-", ".")], ...timed, ["Termination", how]];
  }
  if (limit === null) return [["DT", date]];
  const over = periods > 0 ? `${periods}x${period / 1000} byo-yomi` : each > 0 ? `${each} fischer` : "";
  return [["DT", date], ["TM", seconds], ...(over === "" ? [] : [["OT", over]])];
}

/** How the players ended a game, as its notation says it. */
function resultOf(ended, format) {
  if (ended === null) return null;
  if (format === "pgn") return ended.outcome > 0 ? "1-0" : "0-1";
  if (ended.outcome === 0) return "0";
  const [, points] = /^by ([\d.]+)/.exec(ended.why) ?? [];
  return `${ended.outcome > 0 ? "B" : "W"}+${points ?? (ended.why === "on time" ? "T" : "R")}`;
}

/** The address of this page with the position on the board. */
export function linkTo({ name, start, current }) {
  const said = new URLSearchParams({ game: name, moves: JSON.stringify(current.moves()) });
  if (start !== null) said.set("position", start);
  return `${location.href.replace(/#.*/, "")}#${said}`;
}

/** Opens the game that the page's address names. Then the address names it no longer: a reload shows what was played.
 * Gives null if a game was opened; else why not, empty if the address names none. */
export async function openLink(connection, settings, open) {
  const said = new URLSearchParams(location.hash.slice(1));
  const name = said.get("game");
  if (name === null) return "";
  history.replaceState(null, "", location.pathname + location.search);
  try {
    const model = settings.models.find((one) => one.game === name)?.name;
    if (model === undefined) throw new Error(`this server does not play ${name}`);
    const moves = JSON.parse(said.get("moves") ?? "[]");
    const record = { position: said.get("position"), nodes: moves.map((move, index) => [index - 1, move]) };
    const { game } = await readGame(JSON.stringify(record), (query) => connection.ask({ model, ...query }).answer);
    settings.choose(name);
    await open(game);
    return null;
  } catch (error) {
    return `The link cannot be opened: ${error.message}`;
  }
}

/** Puts a text on the clipboard, also where a page that is not secure has no access to it. */
export async function copyText(text) {
  if (navigator.clipboard !== undefined) return navigator.clipboard.writeText(text);
  const field = make("textarea", { value: text });
  (document.querySelector("dialog[open]") ?? document.body).append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}

/** A picture as a file of dots. */
export async function pictureFile(svg, name) {
  const [, , width, height] = boxOf(svg);
  const image = make("img", { src: pictureAddress(svg) });
  await image.decode();
  const canvas = make("canvas", { width: WIDTH, height: Math.round((WIDTH * height) / width) });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  const dots = await new Promise((resolve) => canvas.toBlob(resolve));
  return new File([dots], name, { type: "image/png" });
}

/** Hands a file to the person. */
export function save(file) {
  const link = make("a", { href: URL.createObjectURL(file), download: file.name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000); // once it is surely written
}
