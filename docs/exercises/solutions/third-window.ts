/** Three windows: all are judged before any is touched. */
import type { SlotLimiter } from '../../../src/access/limiter.ts';
import type { Limited } from '../../../src/access/limits.ts';
import type { Clock } from '../../../src/clock.ts';

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

  take(caller: HourLimited): { isAdmitted: boolean; retryAt: number } {
    const now = this.#clock.now();
    const kept = this.#hours.get(caller.slot);
    const hour = kept !== undefined && kept.endsAt > now ? kept : { used: 0, endsAt: now + HOUR_MS };
    if (hour.used >= caller.perHour) {
      // A look takes nothing, and says whether somebody else refuses for longer.
      const { retryAt } = this.#minuteAndDay.look(caller);
      return { isAdmitted: false, retryAt: Math.max(hour.endsAt, retryAt) };
    }
    const { verdict, retryAt } = this.#minuteAndDay.take(caller);
    if (verdict !== 'admitted') return { isAdmitted: false, retryAt };
    hour.used++;
    this.#hours.set(caller.slot, hour);
    return { isAdmitted: true, retryAt };
  }
}
