/** The limits as lines of a response head. */
import { newest } from '../text.ts';
import type { Allowance } from './addresses.ts';
import type { Decision } from './limiter.ts';

const MAX_DRIFT_MS = 250;

// Between the counts, the lines seldom differ from one reply to the next, and a head of few long pieces is joined and sent
// faster than one of many short ones.
const limitOf = newest((limit) => `X-RateLimit-Limit: ${limit}\r\nX-RateLimit-Remaining: `);
const resetAndPolicyOf = newest((reset, perMinute, perDay) => {
  const policy = `"minute";q=${perMinute};w=60, "day";q=${perDay};w=86400`;
  return `\r\nX-RateLimit-Reset: ${reset}\r\nRateLimit-Policy: ${policy}\r\nRateLimit: "minute";r=`;
});
const minuteEndOf = newest((seconds) => `;t=${seconds}, "day";r=`);
const dayEndOf = newest((seconds) => `;t=${seconds}\r\n`);

/** Writes the limit headers. Moments of a monotonic clock become those of the wall clock, which clients read. */
export class LimitHeaders {
  readonly #wall: () => number;
  readonly #offsets = new Map<'key' | 'address', number>();

  constructor(wall: () => number) {
    this.#wall = wall;
  }

  /** Both windows of a key. During a ban the X-RateLimit headers show that nothing remains until it ends. */
  ofKey(decision: Decision): string {
    const { at, verdict, minute, day, binding, retryAt } = decision;
    const shown = decision[binding];
    const isBanned = verdict === 'banned';
    const reset = Math.ceil((this.#offset('key', at) + (isBanned ? retryAt : shown.endsAt)) / 1_000);
    const remaining = isBanned ? 0 : shown.remaining;
    const first = `${limitOf(shown.limit)}${remaining}${resetAndPolicyOf(reset, minute.limit, day.limit)}`;
    const [minuteEnd, dayEnd] = [minuteEndOf(secondsTo(minute.endsAt, at)), dayEndOf(secondsTo(day.endsAt, at))];
    return `${first}${minute.remaining}${minuteEnd}${day.remaining}${dayEnd}`;
  }

  ofAddress({ at, limit, remaining, endsAt }: Allowance): string {
    return `X-RateLimit-Limit: ${limit}\r
X-RateLimit-Remaining: ${remaining}\r
X-RateLimit-Reset: ${Math.ceil((this.#offset('address', at) + endsAt) / 1_000)}\r
RateLimit-Policy: "address";q=${limit};w=60\r
RateLimit: "address";r=${remaining};t=${secondsTo(endsAt, at)}\r
`;
  }

  /**
   * From the clock that counts, now at `at`, to the wall clock. Read anew only when it is clearly wrong: otherwise the
   * reset of one window would jump to and fro by a second.
   */
  #offset(of: 'key' | 'address', at: number): number {
    const now = this.#wall() - at;
    const known = this.#offsets.get(of);
    if (known !== undefined && Math.abs(now - known) <= MAX_DRIFT_MS) return known;
    this.#offsets.set(of, now);
    return now;
  }
}

const secondsTo = (endsAt: number, at: number): number => Math.max(0, Math.ceil((endsAt - at) / 1_000));
