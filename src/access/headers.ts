/** The limits as lines of a response head. */
import type { Allowance } from './addresses.ts';
import type { Decision } from './limiter.ts';

const MAX_DRIFT_MS = 250;

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
    return `X-RateLimit-Limit: ${shown.limit}\r
X-RateLimit-Remaining: ${isBanned ? 0 : shown.remaining}\r
X-RateLimit-Reset: ${reset}\r
RateLimit-Policy: "minute";q=${minute.limit};w=60, "day";q=${day.limit};w=86400\r
RateLimit: "minute";r=${minute.remaining};t=${secondsTo(minute.endsAt, at)}, \
"day";r=${day.remaining};t=${secondsTo(day.endsAt, at)}\r
`;
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
