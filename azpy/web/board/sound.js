// What is heard? Short tones that the browser makes, where the person wants them.

import { byId } from "./dom.js";

const LENGTH = 0.12; // seconds
/** Pitches, one after the other. */
const TONES = { move: [330], take: [220], end: [330, 247, 196] };

let context = null;

export function sound(kind) {
  if (byId("sounds").value === "") return;
  const heard = (context ??= new AudioContext());
  for (const [index, pitch] of TONES[kind].entries()) {
    const at = heard.currentTime + index * LENGTH;
    const [tone, loudness] = [heard.createOscillator(), heard.createGain()];
    [tone.type, tone.frequency.value] = ["triangle", pitch];
    loudness.gain.setValueAtTime(0.2, at);
    loudness.gain.exponentialRampToValueAtTime(0.001, at + LENGTH);
    tone.connect(loudness).connect(heard.destination);
    tone.start(at);
    tone.stop(at + LENGTH);
  }
}
