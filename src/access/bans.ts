/** How a ban comes about, how long it lasts, and how it is forgiven. */
import { DAY_MS, MINUTE_MS } from './limits.ts';

/** Strikes that bring one, as a multiple of the limit a minute, unless `--ban-after` says how many. */
export const STRIKES_PER_MINUTE_LIMIT = 5;
/** How long the first lasts, the second and so on; the last comes again and again. */
const BAN_MINUTES = [2, 8, 32, 128, 512, 1_440];
export const MAX_BANS = BAN_MINUTES.length;

export function banMs(bans: number): number {
  return bans === 0 ? 0 : BAN_MINUTES[bans - 1] * MINUTE_MS;
}

/** How many stand against a caller: for every day since the newest ended, one is forgiven. */
export function standingBans(bans: number, newestEnd: number, now: number): number {
  return Math.max(0, bans - Math.max(0, Math.floor((now - newestEnd) / DAY_MS)));
}
