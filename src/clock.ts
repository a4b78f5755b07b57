/** Two clocks. A third, `Store.unix`, is for moments that are stored and later compared. */
export interface Clock {
  /** Milliseconds that never jump and never go back; the origin means nothing. Limits and time-outs use this clock. */
  now(): number;
  /**
   * Milliseconds since 1970 by the machine's clock; may jump. For times that people and clients read, and for what
   * must follow the calendar: the removal date of `getPet`, and the store's time at its start.
   */
  wall(): number;
}

export const MINUTE_MS = 60_000;
export const DAY_MS = 24 * 60 * MINUTE_MS;

/**
 * The store keeps moments from 1970 to 9999. Our clock stops in 9000, so that the end of a window, or of a replaced
 * key's grace, is a moment that can be kept too.
 */
const [EARLIEST_MS, LATEST_MS] = [1, Date.UTC(9000, 0)];

/** Where the machine's clock shows a moment before or after these two, the nearer of the two is taken. */
export const systemClock: Clock = {
  now: () => performance.now(),
  wall: () => Math.min(Math.max(Date.now(), EARLIEST_MS), LATEST_MS),
};

/** What both times were at one moment: store time (`at`), and the machine's clock. */
export interface TimesSeen {
  at: number;
  wall: number;
}

/** The shortest time between two notices of one kind: so nobody can fill the log by causing them. */
const NOTICE_EVERY_MS = MINUTE_MS;

/** Returns a function that allows a notice, by returning true, at once and then once a minute at most. */
export function onceAMinute(now: Clock['now']): () => boolean {
  let dueAt = Number.NEGATIVE_INFINITY;
  return () => {
    const at = now();
    if (at < dueAt) return false;
    dueAt = at + NOTICE_EVERY_MS;
    return true;
  };
}

/** A duration for people, rounded up: `3 h 12 min`, `12 min`, `45 s`. */
export function inWords(ms: number): string {
  const seconds = Math.ceil(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.ceil(seconds / 60);
  const [hours, rest] = [Math.floor(minutes / 60), minutes % 60];
  return [hours > 0 && `${hours} h`, rest > 0 && `${rest} min`].filter(Boolean).join(' ');
}

const UNITS_MS = { s: 1_000, m: MINUTE_MS, h: 60 * MINUTE_MS, d: DAY_MS };

/** `90s`, `15m`, `24h` or `7d` in milliseconds; NaN for any other text. */
export function durationMs(text: string): number {
  const [, number, unit] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  return Number(number) * UNITS_MS[unit as keyof typeof UNITS_MS];
}
