// What does a board look like? As the server draws it, or with other colors and men of chess in their place.

/** Plain men of chess, in a square of 40. */
const MEN = {
  p: "M20 14A9 9 0 1 0 20.1 14Z",
  n: "M11 33V22L20 7L32 18L28 23L22 20L28 33Z",
  b: "M20 6L31 24L26 33H14L9 24Z",
  r: "M9 33V9H14V14H18V9H22V14H26V9H31V33Z",
  q: "M9 33L6 11L14 20L20 6L26 20L34 11L31 33Z",
  k: "M16 33V23H8V15H16V7H24V15H32V23H24V33Z",
};

/** Colors of squares, lines and men of chess, and of the boards of other games. */
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

/** A picture as it is looked at; an empty look is the server's. */
export function dressed(svg, look) {
  if (look === "") return svg;
  const colors = LOOKS[look] ?? LOOKS.calm;
  const colored = svg.replace(/#[0-9a-f]{6}\b/g, (color) => colors[color] ?? color);
  if (look !== "geometric") return colored;
  return colored.replace(/(<path d=")[^"]*(" class="([kqrbnp])")/g, (_, begin, end, man) => begin + MEN[man] + end);
}
