// What are the two players called?

/**
 * @param {[string, string] | null} names of the game's sides; null for none
 * @returns {[string, string]} for use within a sentence
 */
export function sides(names) {
  return names === null ? ["player 0", "player 1"] : [`${names[0]} (player 0)`, `${names[1]} (player 1)`];
}

/** A player's name without the number. @param {string} name */
export function bare(name) {
  return name.replace(/ \(player \d\)$/, "");
}

/** A text as the beginning of a sentence. @param {string} text */
export function upper(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
