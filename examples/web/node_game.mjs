// Has a player play a game against itself in Node: node node_game.mjs player/
import { pathToFileURL } from "node:url";

const folder = pathToFileURL(`${process.argv[2]}/`);
const { Player } = await import(new URL("azpy.js", folder).href);
const player = await Player.load(folder);
const moves = [];
for (let position = await player.look(moves); position.result === null; position = await player.look(moves)) {
  const isChance = position.player === null;
  const roll = () => position.moves[Math.floor(Math.random() * position.moves.length)]; // fair dice are even
  moves.push(isChance ? roll() : await player.choose(moves, { level: "casual" }));
}
console.log(`${moves.join(" ")}\n${(await player.look(moves)).result}`);
