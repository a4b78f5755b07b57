/** Both windows of a caller, as the texts of headers. */

import type { Decision, WindowState } from '../access/limits.ts';
import type { WallTime } from '../access/wall.ts';
import { digits } from '../digits.ts';

/** The values of the five headers that tell a caller's limits. */
export interface LimitTexts {
  limit: string;
  remaining: string;
  reset: string;
  policy: string;
  state: string;
}

/** Makes the texts, which are on every reply. Of what seldom differs from one reply to the next, the newest is kept. */
export class LimitHeaders {
  readonly #wall: WallTime;
  readonly #policy = newest((perMinute, perDay) => `"minute";q=${perMinute};w=60, "day";q=${perDay};w=86400`);
  readonly #middle = newest((minuteLeft) => `;t=${minuteLeft}, "day";r=`);
  readonly #end = newest((dayLeft) => `;t=${dayLeft}`);

  constructor(wall: WallTime) {
    this.#wall = wall;
  }

  /** Of a caller with a key: the window that binds, and the policy and state of both. During a ban nothing remains. */
  ofKey({ at, minute, day, binding, verdict, retryAt }: Decision): LimitTexts {
    const shown = binding === 'minute' ? minute : day;
    const isBanned = verdict === 'banned';
    const ofMinute = isBanned ? '0' : digits(minute.remaining);
    const ofDay = isBanned ? '0' : digits(day.remaining);
    const middle = this.#middle(secondsLeft(isBanned ? retryAt : minute.endsAt, at));
    const end = this.#end(secondsLeft(isBanned ? retryAt : day.endsAt, at));
    return {
      limit: String(shown.limit),
      remaining: binding === 'minute' ? ofMinute : ofDay,
      reset: String(this.#wall.unixSeconds(isBanned ? retryAt : shown.endsAt, at)),
      policy: this.#policy(minute.limit, day.limit),
      state: `"minute";r=${ofMinute}${middle}${ofDay}${end}`,
    };
  }

  /** Of an address without a valid key: the refusals it has left. */
  ofAddress({ limit, remaining, endsAt }: WindowState, now: number): LimitTexts {
    return {
      limit: String(limit),
      remaining: String(remaining),
      reset: String(this.#wall.unixSeconds(endsAt, now)),
      policy: `"address";q=${limit};w=60`,
      state: `"address";r=${remaining};t=${secondsLeft(endsAt, now)}`,
    };
  }
}

/** The text made of two numbers, made anew only when they differ from those before. */
function newest(make: (a: number, b: number) => string): (a: number, b?: number) => string {
  let [lastA, lastB, text] = [Number.NaN, Number.NaN, ''];
  return (a, b = 0) => {
    if (a !== lastA || b !== lastB) [lastA, lastB, text] = [a, b, make(a, b)];
    return text;
  };
}

function secondsLeft(endsAt: number, now: number): number {
  return Math.max(0, Math.ceil((endsAt - now) / 1000));
}
