/**
 * Exercise: a third window, an hour, in front of the limiter that has the other two (docs/tour.md, "The limiter").
 * This one asks the hour first and the limiter after it, as most people write it first.
 */
import type { SlotLimiter } from '../../src/access/limiter.ts';
import type { Limited } from '../../src/access/limits.ts';
import type { Clock } from '../../src/clock.ts';

export const HOUR_MS = 3_600_000;

export interface HourLimited extends Limited {
  readonly perHour: number;
}

export class HourLimiter {
  readonly #clock: Clock;
  readonly #minuteAndDay: SlotLimiter;
  readonly #hours = new Map<number, { used: number; endsAt: number }>();

  constructor(clock: Clock, minuteAndDay: SlotLimiter) {
    this.#clock = clock;
    this.#minuteAndDay = minuteAndDay;
  }

  /** Must take one token of all three windows, or of none; this one does not. A refusal tells when to come back. */
  take(caller: HourLimited): { isAdmitted: boolean; retryAt: number } {
    const now = this.#clock.now();
    let hour = this.#hours.get(caller.slot);
    if (hour === undefined || hour.endsAt <= now) {
      hour = { used: 0, endsAt: now + HOUR_MS };
      this.#hours.set(caller.slot, hour);
    }
    if (hour.used >= caller.perHour) return { isAdmitted: false, retryAt: hour.endsAt };
    hour.used++;
    const { verdict, retryAt } = this.#minuteAndDay.take(caller);
    return { isAdmitted: verdict === 'admitted', retryAt };
  }
}
