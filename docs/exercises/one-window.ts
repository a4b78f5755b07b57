/**
 * Exercise: one window of one caller (docs/tour.md, "The limiter"). This one is refilled continuously, as most people
 * write it first. See which promises it breaks, then keep them.
 */
import type { WindowState } from '../../src/access/limits.ts';
import { type Clock, MINUTE_MS } from '../../src/clock.ts';

export class OneWindow {
  readonly #clock: Clock;
  readonly #limit: number;
  #tokens: number;
  #refilledAt: number;

  constructor(clock: Clock, limit: number) {
    this.#clock = clock;
    this.#limit = limit;
    this.#tokens = limit;
    this.#refilledAt = clock.now();
  }

  /** Takes one token, if there is one. Returns the window as it then stands; it "ends" when it is full again. */
  take(): WindowState & { isAdmitted: boolean } {
    const now = this.#clock.now();
    const tokensPerMs = this.#limit / MINUTE_MS;
    this.#tokens = Math.min(this.#limit, this.#tokens + (now - this.#refilledAt) * tokensPerMs);
    this.#refilledAt = now;
    const isAdmitted = this.#tokens >= 1;
    if (isAdmitted) this.#tokens -= 1;
    const endsAt = now + (this.#limit - this.#tokens) / tokensPerMs;
    return { isAdmitted, limit: this.#limit, remaining: this.#tokens, endsAt };
  }
}
