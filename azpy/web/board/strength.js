// How strongly does a network play? One text says it: a level, a number of simulations, or seconds as "2 s".

import { upper } from "./seats.js";

const USUAL = 200; // simulations of az-play and az-serve where nobody says another number
const SIMULATIONS = [50, 200, 800, 3200];
const SECONDS = [1, 2, 5, 10];

/** The strength of a first game: casual, unless someone chose the simulations. */
export function usualStrength({ levels, simulations, network }) {
  const isUsual = network !== null && simulations === USUAL && levels.some(({ name }) => name === "casual");
  return isUsual ? "casual" : `${simulations}`;
}

export function strengthOf(strength) {
  return /^\d+$/.test(strength) ? `${strength} simulation${strength === "1" ? "" : "s"}` : strength;
}

/** What can be chosen of a player's strength, with its words. */
export function strengths({ levels, simulations, limits }) {
  const counts = [...new Set([...SIMULATIONS, simulations])].sort((one, other) => one - other);
  const texts = [
    ...counts.filter((one) => one <= limits.simulations).map((one) => `${one}`),
    ...SECONDS.filter((one) => one <= limits.seconds).map((one) => `${one} s`),
  ];
  const known = levels.map(({ name, elo }) => [name, elo === undefined ? upper(name) : `${upper(name)} (Elo ${elo})`]);
  return [...known, ...texts.map((text) => [text, strengthOf(text)])];
}

/** A strength as a person typed it, within the limits of the server; empty for none. */
export function readStrength(text, { limits }) {
  const number = Number.parseFloat(text);
  if (!(number > 0)) return "";
  const isTime = /\d\s*s(ec\w*)?\s*$/.test(text);
  return isTime ? `${Math.min(number, limits.seconds)} s` : `${Math.min(Math.ceil(number), limits.simulations)}`;
}

/** What a query says of a strength, within the limits of the server. */
export function limitsOf(strength, model) {
  if (model.levels.some(({ name }) => name === strength)) return { level: strength };
  const read = readStrength(strength, model) || readStrength(`${model.simulations}`, model);
  return read.endsWith("s") ? { seconds: Number.parseFloat(read) } : { simulations: Number(read) };
}
