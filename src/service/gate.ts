/**
 * The gate: the key, then the limits, and what a reply says of them. Without a valid key a request is counted by its
 * address.
 */
import type { Socket } from 'node:net';
import { Addresses, type Allowance, clientAddress } from '../access/addresses.ts';
import { type Callers, UNKNOWN } from '../access/callers.ts';
import { keyName } from '../access/keys.ts';
import { type Decision, type Limiter, retryAfterSeconds } from '../access/limiter.ts';
import type { Clock } from '../clock.ts';
import { ApiError, line } from '../http/errors.ts';
import { errorReply, type Reply } from '../http/reply.ts';
import type { Incoming } from '../http/request.ts';
import type { Log } from '../store/engine.ts';
import type { Exchange } from './routes.ts';

const BANNED = 'this key is banned for a while: it kept sending requests after a 429';

/** Memoizes the last call. */
function memoizeLast<T>(make: (a: number, b: number, c: number) => T): (a: number, b?: number, c?: number) => T {
  let last: { a: number; b: number; c: number; made: T } | undefined;
  return (a, b = 0, c = 0) => {
    if (last === undefined || a !== last.a || b !== last.b || c !== last.c) last = { a, b, c, made: make(a, b, c) };
    return last.made;
  };
}

// These go out by the thousand. Within a second those of one limit are the same, so each is made once.
const banned = memoizeLast((seconds) => errorReply(tooMany('key_banned', BANNED, seconds)));
const limited = (window: 'minute' | 'day') =>
  memoizeLast((limit, seconds) =>
    errorReply(tooMany('rate_limited', `the limit of ${limit} requests a ${window} is used up`, seconds)),
  );
const LIMITED = { minute: limited('minute'), day: limited('day') };

interface Options {
  readonly clock: Clock;
  readonly log: Log;
  /** How many proxies in front are trusted to say where a request came from. */
  readonly trustProxy: number;
}

export class Gate {
  readonly addresses: Addresses;
  /** Bans that have begun since the start. */
  bans = 0;
  readonly #options: Options;
  readonly #headers: LimitHeaders;

  constructor(options: Options) {
    this.#options = options;
    this.addresses = new Addresses(options.clock);
    this.#headers = new LimitHeaders(() => options.clock.wall());
  }

  /** Sets the caller of the request, and what its limits say. Resolves with a refusal if there is no valid key. */
  async identify(
    exchange: Exchange,
    callers: Callers,
    limiter: Pick<Limiter, 'take' | 'refresh'>,
  ): Promise<Decision | ApiError> {
    const { authorization } = exchange.headers;
    let caller = callers.identify(authorization);
    if (caller === UNKNOWN && limiter.refresh !== undefined) {
      await limiter.refresh();
      caller = callers.identify(authorization);
    }
    if (caller instanceof ApiError) return this.#unauthorized(exchange, caller);
    let decision = limiter.take(caller.key);
    if (decision instanceof Promise) {
      decision = await decision;
      caller = callers.identify(authorization); // its key may have ended meanwhile
      if (caller instanceof ApiError) return this.#unauthorized(exchange, caller);
    }
    exchange.caller = caller;
    exchange.decision = decision;
    exchange.limits = this.#headers.ofKey(decision);
    if (decision.banBegan) {
      this.bans++;
      const seconds = retryAfterSeconds(decision.retryAt, decision.at);
      this.#options.log.info('a ban began', { key: keyName(caller.key.id), seconds });
    }
    return decision;
  }

  /** The refusal by the limits; undefined: they admit the request. */
  refusal(decision: Decision): Reply | undefined {
    const { verdict, binding } = decision;
    if (verdict === 'admitted') return undefined;
    const seconds = retryAfterSeconds(decision.retryAt, decision.at);
    return verdict === 'banned' ? banned(seconds) : LIMITED[binding](decision[binding].limit, seconds);
  }

  /** The limit headers of a reply to a request without a valid key. `req` is missing if it could not be parsed. */
  limitsWithoutKey(socket: Socket, req?: Incoming): string {
    return this.#headers.ofAddress(this.addresses.look(this.addressOf(socket, req)));
  }

  /** The address under which a request is counted. */
  addressOf(socket: Socket, req?: Incoming): string {
    return clientAddress(socket.remoteAddress, req?.headers['x-forwarded-for'], this.#options.trustProxy);
  }

  #unauthorized(exchange: Exchange, refusal: ApiError): ApiError {
    const allowance = this.addresses.count(this.addressOf(exchange.connection.socket, exchange.req));
    exchange.limits = this.#headers.ofAddress(allowance);
    if (!allowance.isOver) return refusal;
    const why = `the limit of ${allowance.limit} requests a minute without a valid key is used up`;
    return tooMany('rate_limited', why, retryAfterSeconds(allowance.endsAt, allowance.at));
  }
}

const tooMany = (code: 'rate_limited' | 'key_banned', why: string, seconds: number) =>
  new ApiError(code, `${why}; ask again in ${seconds} s`, line('Retry-After', `${seconds}`));

const MAX_DRIFT_MS = 250;

// Between the counts, the lines seldom differ from one reply to the next, and a head of few long pieces is joined and sent
// faster than one of many short ones.
const limitOf = memoizeLast((limit) => `X-RateLimit-Limit: ${limit}\r\nX-RateLimit-Remaining: `);
const resetAndPolicyOf = memoizeLast((reset, perMinute, perDay) => {
  const policy = `"minute";q=${perMinute};w=60, "day";q=${perDay};w=86400`;
  return `\r\nX-RateLimit-Reset: ${reset}\r\nRateLimit-Policy: ${policy}\r\nRateLimit: "minute";r=`;
});
const minuteEndOf = memoizeLast((seconds) => `;t=${seconds}, "day";r=`);
const dayEndOf = memoizeLast((seconds) => `;t=${seconds}\r\n`);

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
   * From the clock that counts (store time for keys, the monotonic clock for addresses), now at `at`, to the wall clock.
   * Read anew only when it is clearly wrong: otherwise the reset of one window would jump to and fro by a second.
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
