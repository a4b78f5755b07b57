/** One window that is refilled whole, and begins with the first request admitted. */
import type { WindowState } from '../../../src/access/limits.ts';
import { type Clock, MINUTE_MS } from '../../../src/clock.ts';

export class OneWindow {
  readonly #clock: Clock;
  readonly #limit: number;
  #used = 0;
  /** Until the first request there is no window: one that has ended is the same. */
  #endsAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, limit: number) {
    this.#clock = clock;
    this.#limit = limit;
  }

  take(): WindowState & { isAdmitted: boolean } {
    const now = this.#clock.now();
    if (this.#endsAt <= now) {
      this.#used = 0;
      this.#endsAt = now + MINUTE_MS;
    }
    const isAdmitted = this.#used < this.#limit;
    if (isAdmitted) this.#used++;
    return { isAdmitted, limit: this.#limit, remaining: this.#limit - this.#used, endsAt: this.#endsAt };
  }
}
