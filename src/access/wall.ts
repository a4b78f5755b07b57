import type { Clock } from '../clock.ts';

const MAX_DRIFT_MS = 250;
/** How often the clocks are compared at most. */
const CHECKED_EVERY_MS = 250;

/** Tells moments of the monotonic clock in Unix time, for headers. */
export class WallTime {
  readonly #clock: Clock;
  #offset: number;
  #checkedAt: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#checkedAt = clock.now();
    this.#offset = clock.wall() - this.#checkedAt;
  }

  /**
   * Unix seconds of `moment`, rounded up. The offset between the clocks is kept until it is clearly off: read anew each
   * time, it would let the reset of one and the same window wobble by a second.
   */
  unixSeconds(moment: number, now: number): number {
    if (now - this.#checkedAt >= CHECKED_EVERY_MS) {
      const offset = this.#clock.wall() - this.#clock.now();
      if (Math.abs(offset - this.#offset) > MAX_DRIFT_MS) this.#offset = offset;
      this.#checkedAt = now;
    }
    return Math.ceil((moment + this.#offset) / 1000);
  }
}
