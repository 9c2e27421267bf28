// Who sits at the game? A row beside the board, and in the dialog of a new game a choice, for each of one to six players.

import { byId } from "./dom.js";

/** The elements of a part, such as "clock", from that of player 0 on. */
export function seats(name) {
  const found = [];
  for (let one; (one = document.getElementById(`${name}_${found.length}`)) !== null; ) found.push(one);
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
