// What are the two players called?

/** @type {Record<string, [string, string]>} the first player's color, and the second player's */
const COLORS = {
  backgammon: ["red", "blue"],
  breakthrough: ["red", "blue"],
  chess: ["White", "Black"],
  connect_four: ["red", "blue"],
  go: ["Black", "White"],
  gomoku: ["Black", "White"],
  hex: ["red", "blue"],
  othello: ["Black", "White"],
  tic_tac_toe: ["x", "o"],
  trictrac: ["red", "blue"],
  wall_game: ["red", "blue"],
};

/** A game's name without its parameters. @param {string} game */
export function kind(game) {
  return game.split("(")[0];
}

/** @param {string} game its name, perhaps with parameters @returns {[string, string]} for use within a sentence */
export function sides(game) {
  const colors = COLORS[kind(game)];
  return colors === undefined ? ["player 0", "player 1"] : [`${colors[0]} (player 0)`, `${colors[1]} (player 1)`];
}

/** A text as the beginning of a sentence. @param {string} text */
export function upper(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
