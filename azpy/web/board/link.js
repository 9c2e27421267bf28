// Which position does the page's address name? A link shows one to other people.

import { messageOf } from "./dom.js";
import { readGame } from "./files.js";

/** The address of this page with the position on the board. */
export function linkTo(name, game) {
  const said = new URLSearchParams({ game: name, moves: JSON.stringify(game.current.moves()) });
  if (game.start !== null) said.set("position", game.start);
  return `${location.href.replace(/#.*/, "")}#${said}`;
}

/** Opens the game that the page's address names. Then the address names it no longer: a reload shows what was played.
 * Gives null if a game was opened; else why not, empty if the address names none. */
export async function openLink(ask, settings, open) {
  const said = new URLSearchParams(location.hash.slice(1));
  const name = said.get("game");
  if (name === null) return "";
  history.replaceState(null, "", location.pathname + location.search);
  try {
    const model = settings.models.find((one) => one.game === name)?.name;
    if (model === undefined) throw new Error(`this server does not play ${name}`);
    const moves = JSON.parse(said.get("moves") ?? "[]");
    const record = { position: said.get("position"), nodes: moves.map((move, index) => [index - 1, move]) };
    const { game } = await readGame(JSON.stringify(record), (query) => ask({ model, ...query }));
    settings.choose(name);
    await open(game);
    return null;
  } catch (error) {
    return `The link cannot be opened: ${messageOf(error)}`;
  }
}
