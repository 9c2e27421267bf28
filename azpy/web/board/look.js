// What colors does a board have? Those of the server's picture, or others in their place.

/**
 * Squares, lines and men of chess, and the boards of other games.
 * @type {Record<string, Record<string, string>>}
 */
const LOOKS = {
  wood: {
    ...{ "#8fa5b5": "#b58a5f", "#e6ebee": "#ecd6b0", "#262626": "#3b2417", "#c8c8c8": "#e7cfa6" },
    ...{ "#e2e8f0": "#c79a63", "#f1f5f9": "#f0dfc0", "#94a3b8": "#8a6a45", "#3f8f5f": "#4f7f52", "#f4efe6": "#efdcb8" },
  },
  calm: {
    ...{ "#8fa5b5": "#8fae9d", "#e6ebee": "#eef1e6", "#262626": "#24343b", "#c8c8c8": "#cfdcd6" },
    ...{ "#e2e8f0": "#d5e0d6", "#f1f5f9": "#eff3ea", "#94a3b8": "#8aa397", "#e3b869": "#d9d3b4", "#4a3a1c": "#4b5546" },
    ...{ "#8a6a4a": "#6d8577", "#f2e6d0": "#eef0e2", "#d9b88f": "#bccbb5", "#b98d62": "#8fae9d", "#f4efe6": "#eef0e2" },
  },
};

/** A picture in the colors of a look. @param {string} svg @param {string} look empty for the server's */
export function colored(svg, look) {
  const colors = LOOKS[look];
  return colors === undefined ? svg : svg.replace(/#[0-9a-f]{6}\b/g, (color) => colors[color] ?? color);
}
