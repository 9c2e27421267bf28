// What are the players called?

/**
 * @param {string[] | null} names of the game's sides; null for none
 * @param {number} players how many there are
 * @returns {string[]} for use within a sentence
 */
export function sides(names, players) {
  return names ?? Array.from({ length: players }, (_, player) => `player ${player}`);
}

/** A text as the beginning of a sentence. @param {string} text */
export function upper(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
