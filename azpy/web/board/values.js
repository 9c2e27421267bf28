// How is a value told? From −1 to +1, or as the percent of the points that a side can expect.

let isPercent = false;

/** What a move lost of the value, from −1 to +1, to be judged so: as lichess judges chances to win. */
const JUDGEMENTS = [
  { least: 0.3, mark: "??", said: "a blunder" },
  { least: 0.2, mark: "?", said: "a mistake" },
  { least: 0.1, mark: "?!", said: "inaccurate" },
];

/** Has values told in percent. */
export function tellPercent(isOn) {
  isPercent = isOn;
}

/** A value; a dash for none. */
export function told(value, digits = 2) {
  if (value === null) return "–";
  if (isPercent) return `${Math.round(50 * (1 + value))}%`;
  const text = Math.abs(value).toFixed(digits);
  return Number(text) === 0 ? text : (value < 0 ? "−" : "+") + text;
}

/** What was lost of a value, without a sign. */
export function toldLoss(loss) {
  return isPercent ? `${Math.round(50 * loss)}%` : loss.toFixed(2);
}

/** What a move is worth that lost so much; null for one that is worth no remark, or whose loss is not known. */
export function judged(loss) {
  return JUDGEMENTS.find(({ least }) => loss !== null && loss >= least) ?? null;
}
