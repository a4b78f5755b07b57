/** The interface of the limiter: its questions and its answers. No HTTP, no I/O. */
import type { Clock } from '../clock.ts';

/** The strikes that bring a ban, as a multiple of the limit a minute. `--ban-after` gives their number instead. */
export const STRIKES_PER_MINUTE_LIMIT = 5;

/** A caller, as the limiter sees it: its place in the rows, and the limits in force for it now. */
export interface Limited {
  readonly slot: number;
  readonly perMinute: number;
  readonly perDay: number;
  /** The id of its key, for messages. */
  readonly id?: string;
}

/** The state of one window. Until a request is counted in it, the window is not open, and `endsAt` is the present. */
export interface WindowState {
  limit: number;
  remaining: number;
  endsAt: number;
}

export type Verdict = 'admitted' | 'limited' | 'banned';

/** The result of a take or a look. All moments are Unix ms; the spans between them are those of the limiter's clock. */
export interface Decision {
  at: number;
  verdict: Verdict;
  minute: WindowState;
  day: WindowState;
  /**
   * When a refused caller is admitted again: the end of the window that refused, or of the ban.
   * If a window is used up during a ban, it is the later of the two ends.
   */
  retryAt: number;
  /** Which window the X-RateLimit headers describe. */
  binding: 'minute' | 'day';
  /** True on the one refusal that began a ban. */
  banBegan: boolean;
}

export interface Looked extends Decision {
  strikes: number;
  /** How many bans count against the caller now: the next one lasts `BAN_MINUTES[bans + 1]`, or as long as the last. */
  bans: number;
  /** When the ban that runs ends; 0: none runs. */
  banEndsAt: number;
}

export interface Limiter {
  /**
   * Takes a token from both windows, or from neither. A decision that is returned at once is reused: read it
   * before the next call. A promised decision is an object of its own.
   */
  take(caller: Limited): Decision | Promise<Decision>;
  /** Present if other processes make keys too: resolves when this process can read every key acknowledged before. */
  fresh?(): Promise<void>;
  /** The caller's counts, and the decision that a take would make. Takes nothing and counts no strike. */
  look(caller: Limited): Looked | Promise<Looked>;
  /** Ends a ban and forgets strikes and earlier bans. */
  lift(caller: Limited): void | Promise<void>;
}

/** The options of a limiter in this process. */
export interface LimiterOptions {
  clock: Clock;
  /** The limiter's clock, in unix ms. It must run as evenly as the monotonic one, and not jump at a restart. */
  unix: () => number;
  /** Strikes that bring a ban; 0: none ever does; absent: 5 × the caller's limit a minute. */
  banAfter?: number;
}

export function emptyDecision(): Decision {
  const minute = { limit: 0, remaining: 0, endsAt: 0 };
  const day = { limit: 0, remaining: 0, endsAt: 0 };
  return { at: 0, verdict: 'admitted', minute, day, retryAt: 0, binding: 'minute', banBegan: false };
}

export function showWindow(window: WindowState, limit: number, used: number, endsAt: number, at: number): void {
  window.limit = limit;
  window.remaining = used < limit ? limit - used : 0;
  window.endsAt = used > 0 ? endsAt : at;
}

/**
 * Completes a decision whose windows are filled in: the verdict, and all that follows from it. The window that binds
 * has the fewest requests remaining; on a tie it is the one that ends later. It is the one that refuses a request.
 */
export function conclude(decision: Decision, verdict: Verdict, at: number, banEndsAt: number): Decision {
  const { minute, day } = decision;
  const dayBinds = day.remaining === minute.remaining ? day.endsAt >= minute.endsAt : day.remaining < minute.remaining;
  decision.at = at;
  decision.verdict = verdict;
  decision.binding = dayBinds ? 'day' : 'minute';
  decision.banBegan = false;
  decision.retryAt = verdict === 'banned' ? banEndsAt : at;
  if (verdict === 'admitted') return decision;
  if (minute.remaining === 0) decision.retryAt = Math.max(decision.retryAt, minute.endsAt);
  if (day.remaining === 0) decision.retryAt = Math.max(decision.retryAt, day.endsAt);
  return decision;
}

/** A timer may fire a fraction early; a client that waits exactly as long as asked must still be admitted. */
const TIMER_SLACK_MS = 2;

/** The value of `Retry-After`: whole seconds from now until `retryAt`, at least 1. */
export function retryAfterSeconds(retryAt: number, now: number): number {
  return Math.max(1, Math.ceil((retryAt - now + TIMER_SLACK_MS) / 1000));
}
