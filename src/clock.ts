/** Two clocks. A third, `Store.now`, is for moments that are stored and later compared. */
export interface Clock {
  /** Milliseconds that never jump and never go back; the origin means nothing. */
  now(): number;
  /** Milliseconds since 1970 by the machine's clock; may jump. For times that people and clients read. */
  wall(): number;
}

export const MINUTE_MS = 60_000;
export const DAY_MS = 24 * 60 * MINUTE_MS;

/** A machine's clock may be set to anything. Moments up to this one, and a day or a ban after it, are valid dates. */
const LATEST_MS = Date.UTC(9000, 0);

export const systemClock: Clock = {
  now: () => performance.now(),
  wall: () => Math.min(Math.max(Date.now(), 1), LATEST_MS),
};

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

const UNITS_MS = { s: 1_000, m: MINUTE_MS, h: 60 * MINUTE_MS, d: DAY_MS };

/** `90s`, `15m`, `24h` or `7d` in milliseconds; NaN for any other text. */
export function durationMs(text: string): number {
  const [, number, unit] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  return Number(number) * UNITS_MS[unit as keyof typeof UNITS_MS];
}
