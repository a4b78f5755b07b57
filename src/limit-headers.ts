/** What a caller has left, as the texts of headers. */
import type { Allowance } from './access/addresses.ts';
import type { Decision } from './access/limits.ts';
import { digits, newest } from './digits.ts';
import type { LimitTexts } from './http/reply.ts';

/** Of what seldom differs from one reply to the next, the newest text is kept. */
const policyOf = newest((perMinute, perDay) => `"minute";q=${perMinute};w=60, "day";q=${perDay};w=86400`);
const middleOf = newest((minuteLeft) => `;t=${minuteLeft}, "day";r=`);
const endOf = newest((dayLeft) => `;t=${dayLeft}`);

/**
 * Of a caller with a key: the window that binds, and the policy and state of both. During a ban nothing remains until
 * that ends; the state of both windows is told as it truly is, since a ban takes nothing from them.
 */
export function keyLimits(decision: Decision): LimitTexts {
  const { at, minute, day, binding, verdict, retryAt } = decision;
  const shown = decision[binding];
  const isBanned = verdict === 'banned';
  const middle = middleOf(secondsLeft(minute.endsAt, at));
  const end = endOf(secondsLeft(day.endsAt, at));
  return {
    limit: String(shown.limit),
    remaining: isBanned ? '0' : digits(shown.remaining),
    reset: String(Math.ceil((isBanned ? retryAt : shown.endsAt) / 1000)),
    policy: policyOf(minute.limit, day.limit),
    state: `"minute";r=${digits(minute.remaining)}${middle}${digits(day.remaining)}${end}`,
  };
}

/** Of an address without a valid key: the refusals it has left. */
export function addressLimits({ at, limit, remaining, endsAt }: Allowance): LimitTexts {
  return {
    limit: String(limit),
    remaining: String(remaining),
    reset: String(Math.ceil(endsAt / 1000)),
    policy: `"address";q=${limit};w=60`,
    state: `"address";r=${remaining};t=${secondsLeft(endsAt, at)}`,
  };
}

function secondsLeft(endsAt: number, at: number): number {
  return Math.max(0, Math.ceil((endsAt - at) / 1000));
}
