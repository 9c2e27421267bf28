// Which encoding does a file have? The order is that of azpy/games/notations.py.

const UTF_16 = { "255,254": "utf-16le", "254,255": "utf-16be" };
/** In these a letter may end in the byte of a bracket or a backslash; and the first bytes of usual letters. */
const TWO_BYTES = [["shift_jis", 0x81, 0x9f], ["big5", 0xa4, 0xc6]];

/** The text of a file of games: as its mark or SGF's CA says, else what it looks like. */
export function decoded(bytes) {
  const latin = new TextDecoder("latin1").decode(bytes);
  const stated = /CA\s*\[\s*([\w-]{1,20})\s*\]/.exec(latin.slice(0, 4096))?.[1] ?? "latin1";
  const guesses = TWO_BYTES.map((usual) => () => inTwoBytes(bytes, ...usual));
  const named = () => (/^(latin1|utf-?8)$/i.test(stated) ? null : read(stated, bytes, false));
  const marked = read(UTF_16[String(bytes.slice(0, 2))] ?? "utf-8", bytes, true);
  return marked ?? [named, ...guesses].reduce((found, guess) => found ?? guess(), null) ?? latin;
}

/** The text, or null if the bytes are not text or the encoding is not known. */
function read(name, bytes, fatal) {
  try {
    return new TextDecoder(name, { fatal }).decode(bytes);
  } catch {
    return null;
  }
}

/** The text, if most of its letters are usual ones and many stand beside others. */
function inTwoBytes(bytes, name, low, high) {
  let [letters, usual, isPlain] = [0, 0, true];
  for (let at = 0; at < bytes.length; ++at) {
    const [first, second] = bytes.subarray(at, at + 2);
    if (first < 0x80) continue;
    ++letters;
    const isPair = name === "big5" || first < 0xa0 || first > 0xdf; // or a narrow letter of Japanese
    if (isPair && first >= low && first <= high) {
      ++usual;
      isPlain &&= second >= 0x80;
    }
    if (isPair) ++at;
  }
  if (isPlain || usual < 0.8 * letters) return null;
  const text = read(name, bytes, true);
  const beside = text?.match(/[^\0-\x7f]{2,}/g)?.join("").length ?? 0;
  return beside < 0.5 * letters ? null : text;
}
