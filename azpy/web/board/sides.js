// What are the two players called?

/**
 * @param {[string, string] | null} names of the game's sides; null for none
 * @returns {[string, string]} for use within a sentence
 */
export function sides(names) {
  return names ?? ["player 0", "player 1"];
}

/** A text as the beginning of a sentence. @param {string} text */
export function upper(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
