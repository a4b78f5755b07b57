/** The rate-limit headers, as lines of a response head: each text begins with the end of the line before it. */
import type { Allowance } from './access/addresses.ts';
import type { Decision } from './access/limits.ts';
import { digits, newest } from './digits.ts';

/**
 * Parts that seldom differ from one reply to the next: the newest text of each is cached. They are as long as can be,
 * since a text of few long parts is put together and sent faster than one of many short ones.
 */
const limitOf = newest((limit) => `\r\nX-RateLimit-Limit: ${limit}\r\nX-RateLimit-Remaining: `);
const resetLine = newest((reset) => `\r\nX-RateLimit-Reset: ${reset}`);
const policyOf = newest((perMinute, perDay) => {
  return `\r\nRateLimit-Policy: "minute";q=${perMinute};w=60, "day";q=${perDay};w=86400\r\nRateLimit: "minute";r=`;
});
const middleOf = newest((minuteEndsIn) => `;t=${minuteEndsIn}, "day";r=`);
const endOf = newest((dayEndsIn) => `;t=${dayEndsIn}\r\n`);

/**
 * The limit headers of a caller with a key: the window that binds, and the policy and state of both windows. During a
 * ban the X-RateLimit headers show that nothing remains until it ends; `RateLimit` still shows the true state of both.
 */
export function keyLimits(decision: Decision): string {
  const { at, minute, day, binding, verdict } = decision;
  const shown = decision[binding];
  const remaining = digits(verdict === 'banned' ? 0 : shown.remaining);
  const first = limitOf(shown.limit) + remaining + resetLine(resetOf(decision)) + policyOf(minute.limit, day.limit);
  const middle = middleOf(secondsLeft(minute.endsAt, at));
  return first + digits(minute.remaining) + middle + digits(day.remaining) + endOf(secondsLeft(day.endsAt, at));
}

/** The value of X-RateLimit-Reset, in Unix seconds: the end of the window that binds, or of a ban. */
export function resetOf(decision: Decision): number {
  const { verdict, retryAt, binding } = decision;
  return Math.ceil((verdict === 'banned' ? retryAt : decision[binding].endsAt) / 1000);
}

/** The limit headers of an address: how many refusals, or large pages, it has left. */
export function addressLimits({ at, limit, remaining, endsAt }: Allowance, name = 'address'): string {
  const policy = `RateLimit-Policy: "${name}";q=${limit};w=60`;
  const state = `RateLimit: "${name}";r=${remaining};t=${secondsLeft(endsAt, at)}`;
  return `${limitOf(limit)}${remaining}${resetLine(Math.ceil(endsAt / 1000))}\r\n${policy}\r\n${state}\r\n`;
}

function secondsLeft(endsAt: number, at: number): number {
  return Math.max(0, Math.ceil((endsAt - at) / 1000));
}
