/** The rate-limit headers, as lines of a response head. */
import type { Allowance } from './access/addresses.ts';
import type { Decision } from './access/limits.ts';
import { digits, newest } from './digits.ts';

/** Parts that seldom differ from one reply to the next: the newest text of each is cached. */
const policyOf = newest((perMinute, perDay) => `"minute";q=${perMinute};w=60, "day";q=${perDay};w=86400`);
const middleOf = newest((minuteLeft) => `;t=${minuteLeft}, "day";r=`);
const endOf = newest((dayLeft) => `;t=${dayLeft}`);

/**
 * The limit headers of a caller with a key: the window that binds, and the policy and state of both windows. During a
 * ban the X-RateLimit headers show that nothing remains until it ends; `RateLimit` still shows the true state of both.
 */
export function keyLimits(decision: Decision): string {
  const { at, minute, day, binding, verdict } = decision;
  const shown = decision[binding];
  const isBanned = verdict === 'banned';
  const middle = middleOf(secondsLeft(minute.endsAt, at));
  const end = endOf(secondsLeft(day.endsAt, at));
  const state = `"minute";r=${digits(minute.remaining)}${middle}${digits(day.remaining)}${end}`;
  const remaining = isBanned ? 0 : shown.remaining;
  return headLines(shown.limit, remaining, resetOf(decision), policyOf(minute.limit, day.limit), state);
}

/** The value of X-RateLimit-Reset, in Unix seconds: the end of the window that binds, or of a ban. */
export function resetOf(decision: Decision): number {
  const { verdict, retryAt, binding } = decision;
  return Math.ceil((verdict === 'banned' ? retryAt : decision[binding].endsAt) / 1000);
}

/** The limit headers of an address: how many refusals, or large pages, it has left. */
export function addressLimits({ at, limit, remaining, endsAt }: Allowance, name = 'address'): string {
  const state = `"${name}";r=${remaining};t=${secondsLeft(endsAt, at)}`;
  return headLines(limit, remaining, Math.ceil(endsAt / 1000), `"${name}";q=${limit};w=60`, state);
}

function headLines(limit: number, remaining: number, reset: number, policy: string, state: string): string {
  return `X-RateLimit-Limit: ${limit}\r\nX-RateLimit-Remaining: ${digits(remaining)}\r\nX-RateLimit-Reset: ${reset}\r\n\
RateLimit-Policy: ${policy}\r\nRateLimit: ${state}\r\n`;
}

function secondsLeft(endsAt: number, at: number): number {
  return Math.max(0, Math.ceil((endsAt - at) / 1000));
}
