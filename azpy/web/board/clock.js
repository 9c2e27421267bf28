// How long did each side think?

import { byId, write } from "./dom.js";

const ENDLESS = { limit: null, more: 0, periods: 0, period: 0 };

/** What a choice of clocks means: "" for none, "5" minutes a side (0 counts up), "5+3" with 3 seconds more a turn,
 * and "10/5x30" with 5 periods of 30 seconds: one that a turn does not use up begins anew. Null for no clock, else the
 * milliseconds of each side (null where it counts up), of what a turn adds, and of each period. */
export function rulesOf(chosen) {
  const read = /^(\d+)(?:\+(\d+))?(?:\/(\d+)x(\d+))?$/.exec(chosen);
  if (read === null) return null;
  const [minutes, more, periods, period] = read.slice(1).map((part) => Number(part ?? 0));
  return { limit: minutes === 0 ? null : 60_000 * minutes, more: 1000 * more, periods, period: 1000 * period };
}

export class Clock {
  /** `onLate` gets the player whose time is up. */
  constructor(onLate) {
    this.onLate = onLate;
    this.used = [0, 0]; // milliseconds
    this.rules = ENDLESS;
    this.running = null; // the player whose clock runs, since `since`
    this.last = null; // the player whose clock ran last, and whose turn has not ended
    setInterval(() => this.tick(), 200);
  }

  reset(rules, used = [0, 0]) {
    [this.used, this.running, this.last, this.rules] = [[...used], null, null, rules ?? ENDLESS];
    this.tick();
  }

  /** Begins anew by other rules; by the same ones the game goes on. */
  follow(rules) {
    if (JSON.stringify(rules ?? ENDLESS) !== JSON.stringify(this.rules)) this.reset(rules, this.used.map(() => 0));
  }

  /** Milliseconds of a side in all; `Infinity` where the clock counts up. */
  get total() {
    const { limit, periods, period } = this.rules;
    return limit === null ? Infinity : limit + periods * period;
  }

  /** A loss on time is taken back: the clock of the side that has no time left begins anew. */
  forgive() {
    this.used = this.used.map((used) => (used >= this.total ? 0 : used));
  }

  /** Has the clock of one player run, or none. */
  run(player) {
    const now = performance.now();
    if (this.running !== null) this.used[this.running] += now - this.since;
    [this.running, this.since] = [player, now];
    this.last = player ?? this.last;
    this.tick();
  }

  /** Ends a turn: a player gets what the rules add. */
  endTurn(player) {
    this.run(null);
    this.last = null;
    const { limit, more, periods, period } = this.rules;
    if (limit === null) return;
    const over = this.used[player] - limit;
    this.used[player] = periods > 0 && over > 0 ? limit + period * Math.floor(over / period) : this.used[player] - more;
  }

  /** Milliseconds that each side used so far. */
  get shown() {
    const now = performance.now();
    return this.used.map((used, player) => used + (this.running === player ? now - this.since : 0));
  }

  /** What a clock shows: the time used where it counts up, else what is left of the limit or of a period. */
  text(used) {
    const { limit, periods, period } = this.rules;
    if (limit === null) return minutesOf(Math.floor(used / 1000));
    const left = Math.max(0, this.total - used);
    if (used < limit || periods === 0) return minutesOf(Math.ceil((left - periods * period) / 1000));
    const others = Math.max(0, Math.ceil(left / period) - 1);
    return `${minutesOf(Math.ceil((left - others * period) / 1000))} (${others})`;
  }

  tick() {
    for (const [player, used] of this.shown.entries()) {
      write(byId(`clock_${player}`), this.text(used));
      if (this.running === player && used >= this.total) {
        this.run(null);
        this.onLate(player);
      }
    }
  }
}

function minutesOf(seconds) {
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}
