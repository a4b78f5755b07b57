/** The seam of the limiter: what is asked of it and what it answers. No HTTP, no I/O. */

export const MINUTE_MS = 60_000;
export const DAY_MS = 86_400_000;

/** Who asks: a place in the limiter's arrays, and the limits in force for it now. */
export interface Limited {
  readonly slot: number;
  readonly perMinute: number;
  readonly perDay: number;
}

/** One window as it stands. `endsAt` is on the monotonic clock; an unopened window ends now. */
export interface WindowState {
  limit: number;
  remaining: number;
  endsAt: number;
}

/** What a take or a look came to. Reused between calls: read it before asking again. */
export interface Decision {
  /** When it was taken (monotonic ms). */
  at: number;
  verdict: 'admitted' | 'limited' | 'banned';
  minute: WindowState;
  day: WindowState;
  /**
   * When a refused caller is admitted again (monotonic ms): the end of the window that refused, or of the ban.
   * A day that is used up and outlasts the ban is waited for as well: who waits until then is admitted.
   */
  retryAt: number;
  /** Which window the X-RateLimit headers describe. */
  binding: 'minute' | 'day';
  /** True on the one refusal that began a ban. */
  banBegan: boolean;
}

/**
 * What of a caller must survive a restart, in wall-clock times (see Usage in store/model.ts).
 * What has expired is 0. Of a ban that is over, `banEndsAt` moves on by a day with every step forgiven.
 */
export interface Counted {
  dayUsed: number;
  dayEndsAt: number;
  banStep: number;
  banEndsAt: number;
}

export interface Limiter {
  /** Takes `cost` tokens from both windows, or from neither. More than a limit allows is never admitted. */
  take(caller: Limited, cost?: number): Decision;
  /** The same answer headers are made of, taking nothing and counting no strike. */
  look(caller: Limited): Decision;
  strikes(caller: Limited): number;
  /** Ends a ban and forgets strikes and escalation. */
  lift(caller: Limited): void;
  /** Puts back what was counted before a restart; expired parts are dropped, impossible ones clamped. */
  restore(caller: Limited, counted: Counted): void;
  /** What is to be remembered of this caller. */
  counted(caller: Limited): Counted;
  /** Slots whose Counted is to be written down, at most `max`; they are clean afterwards. */
  changed(max: number): number[];
  /** These could not be written down after all: `changed` will name them again. */
  unsaved(slots: Iterable<number>): void;
  /** Slots whose ban ran out since the last call (one that was lifted is not among them). */
  bansEnded(): number[];
}

/** A timer may fire a fraction early; who waits exactly as long as told must be admitted all the same. */
const TIMER_SLACK_MS = 2;

/** The value of `Retry-After`: whole seconds from now until `retryAt`, at least 1. */
export function retryAfterSeconds(retryAt: number, now: number): number {
  return Math.max(1, Math.ceil((retryAt - now + TIMER_SLACK_MS) / 1000));
}
