// A bot for boardgame.io: Local({ bots: { 1: await botOf("player/", toMove) } }).
// `G.moves` of your game holds the names of the moves played so far; `toMove` turns a name into a move of your game,
// such as (name) => ({ type: "drop", args: [Number(name) - 1] }). Your game needs
// `ai: { enumerate: () => [] }`: without `ai`, boardgame.io starts no bot.
import { Player } from "./player/azpy.js";

export async function botOf(src, toMove, options = { level: "casual" }) {
  const player = await Player.load(src);
  return class {
    async play({ G }, playerID) {
      const { type, args } = toMove(await player.choose(G.moves, options));
      return { action: { type: "MAKE_MOVE", payload: { type, args, playerID } } };
    }
  };
}
