// How long did each side think?

export class Clock {
  /** @param {(late: number) => void} onLate gets the player whose time is up */
  constructor(onLate) {
    this.onLate = onLate;
    this.used = [0, 0]; // milliseconds
    /** @type {number | null} milliseconds a side */
    this.limit = null;
    /** @type {number | null} the player whose clock runs */
    this.running = null;
    this.since = 0;
    setInterval(() => this.tick(), 200);
  }

  /** @param {number | null} minutes a side; null for no limit @param {number[]} [used] milliseconds so far */
  reset(minutes, used = [0, 0]) {
    [this.used, this.running, this.limit] = [[...used], null, minutes === null ? null : 60_000 * minutes];
    this.tick();
  }

  /** A loss on time is taken back: the clock of the side that has no time left begins anew. */
  forgive() {
    this.used = this.used.map((used) => (this.limit !== null && used >= this.limit ? 0 : used));
  }

  /** Has the clock of one player run, or none. @param {number | null} player */
  run(player) {
    const now = performance.now();
    if (this.running !== null) this.used[this.running] += now - this.since;
    [this.running, this.since] = [player, now];
    this.tick();
  }

  /** Milliseconds that each side used so far. */
  get shown() {
    const now = performance.now();
    return this.used.map((used, player) => used + (this.running === player ? now - this.since : 0));
  }

  tick() {
    for (const player of this.used.keys()) {
      const now = this.shown[player];
      const left = this.limit === null ? now : Math.max(0, this.limit - now);
      const seconds = this.limit === null ? Math.floor(left / 1000) : Math.ceil(left / 1000);
      const place = document.getElementById(`clock_${player}`);
      const text = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
      if (place !== null && place.textContent !== text) place.textContent = text;
      if (this.running === player && this.limit !== null && left === 0) {
        this.run(null);
        this.onLate(player);
      }
    }
  }
}
