/**
 * The gate: the key, then the limits, and what a reply says of them. Without a valid key a request is counted by its
 * address.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { Addresses, type Allowance, clientAddress } from '../access/addresses.ts';
import { type Caller, type Callers, UNKNOWN } from '../access/callers.ts';
import { formatKeyId } from '../access/keys.ts';
import { type Decision, type Limiter, retryAfterSeconds } from '../access/limiter.ts';
import type { Clock } from '../clock.ts';
import { ApiError, type HeaderList } from '../http/errors.ts';
import { header } from '../http/message.ts';
import type { Log } from '../store/engine.ts';

interface Options {
  readonly clock: Clock;
  readonly log: Log;
  /** How many proxies in front are trusted to say where a request came from. */
  readonly trustProxy: number;
}

interface Parts {
  readonly callers: Callers;
  readonly limiter: Limiter;
}

/** What the gate finds out about a request, for its reply and the log: also if it refuses. */
export interface Found {
  caller?: Caller;
  /** The limit headers of the reply. */
  limits?: HeaderList;
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

  /** Takes a token of the caller. Returns a refusal if there is no valid key, or if its limits do not admit the request. */
  async pass(req: IncomingMessage, found: Found, { callers, limiter }: Parts): Promise<Caller | ApiError> {
    const { authorization } = req.headers;
    let caller = callers.identify(authorization);
    if (caller === UNKNOWN && limiter.refresh !== undefined) {
      await limiter.refresh();
      caller = callers.identify(authorization);
    }
    if (caller instanceof ApiError) return this.#withoutKey(req, found, caller);
    const decision = await limiter.take(caller.key);
    callers.check(caller); // it may have ended while a database was asked
    found.caller = caller;
    found.limits = this.#headers.ofKey(decision);
    if (decision.banBegan) {
      this.bans++;
      const seconds = retryAfterSeconds(decision.retryAt, decision.at);
      this.#options.log.info('a ban began', { key: formatKeyId(caller.key.id), seconds });
    }
    return decision.verdict === 'admitted' ? caller : refusalOf(decision);
  }

  #withoutKey(req: IncomingMessage, found: Found, refusal: ApiError): ApiError {
    const allowance = this.addresses.count(this.addressOf(req.socket, req));
    found.limits = this.#headers.ofAddress(allowance);
    if (!allowance.isOver) return refusal;
    const why = `the limit of ${allowance.limit} requests a minute without a valid key is used up`;
    return tooMany('rate_limited', why, retryAfterSeconds(allowance.endsAt, allowance.at));
  }

  /**
   * The limit headers of a reply for which nothing was taken: those of the key if it is valid, else of the address.
   * `parts` is missing before the store is open.
   */
  async look(req: IncomingMessage, parts?: Parts): Promise<HeaderList> {
    if (parts === undefined) return this.lookByAddress(req.socket, req);
    const caller = parts.callers.identify(req.headers.authorization);
    if (caller instanceof ApiError) return this.lookByAddress(req.socket, req);
    try {
      return this.#headers.ofKey(await parts.limiter.look(caller.key));
    } catch {
      return this.lookByAddress(req.socket, req); // the store does not answer, which is the reply
    }
  }

  /** `req` is missing if it could not be parsed. */
  lookByAddress(socket: Socket, req?: IncomingMessage): HeaderList {
    return this.#headers.ofAddress(this.addresses.look(this.addressOf(socket, req)));
  }

  /** The address under which a request is counted. */
  addressOf(socket: Socket, req?: IncomingMessage): string {
    const forwarded = req && header(req, 'x-forwarded-for');
    return clientAddress(socket.remoteAddress, forwarded, this.#options.trustProxy);
  }
}

const tooMany = (code: 'rate_limited' | 'key_banned', why: string, seconds: number) =>
  new ApiError(code, `${why}; ask again in ${seconds} s`, ['Retry-After', `${seconds}`]);

function refusalOf(decision: Decision): ApiError {
  const { verdict, binding, retryAt, at } = decision;
  const seconds = retryAfterSeconds(retryAt, at);
  if (verdict === 'limited') {
    return tooMany('rate_limited', `the limit of ${decision[binding].limit} requests a ${binding} is used up`, seconds);
  }
  return tooMany('key_banned', 'this key is banned for a while: it kept sending requests after a 429', seconds);
}

const MAX_DRIFT_MS = 250;

/** Writes the limit headers. Moments of a monotonic clock become those of the wall clock, which clients read. */
export class LimitHeaders {
  readonly #wall: () => number;
  readonly #offsets = { key: Number.NaN, address: Number.NaN };

  constructor(wall: () => number) {
    this.#wall = wall;
  }

  /** Both windows of a key. During a ban the X-RateLimit headers show that nothing remains until it ends. */
  ofKey(decision: Decision): HeaderList {
    const { at, verdict, minute, day, binding, retryAt } = decision;
    const { limit, remaining, endsAt } = decision[binding];
    const [left, end] = verdict === 'banned' ? [0, retryAt] : [remaining, endsAt];
    const policy = `"minute";q=${minute.limit};w=60, "day";q=${day.limit};w=86400`;
    const ofMinute = `"minute";r=${minute.remaining};t=${secondsTo(minute.endsAt, at)}`;
    const ofDay = `"day";r=${day.remaining};t=${secondsTo(day.endsAt, at)}`;
    return headersOf(limit, left, this.#onTheWall('key', end, at), policy, `${ofMinute}, ${ofDay}`);
  }

  ofAddress({ at, limit, remaining, endsAt }: Allowance): HeaderList {
    const left = `"address";r=${remaining};t=${secondsTo(endsAt, at)}`;
    return headersOf(limit, remaining, this.#onTheWall('address', endsAt, at), `"address";q=${limit};w=60`, left);
  }

  /**
   * A moment of the clock that counts (store time for keys, the monotonic clock for addresses), in Unix seconds. `at`: the
   * present of that clock. The offset to the wall clock is read anew only when it is clearly wrong: otherwise the reset of
   * one window would jump to and fro by a second.
   */
  #onTheWall(of: 'key' | 'address', moment: number, at: number): number {
    const now = this.#wall() - at;
    if (!(Math.abs(now - this.#offsets[of]) <= MAX_DRIFT_MS)) this.#offsets[of] = now;
    return Math.ceil((this.#offsets[of] + moment) / 1_000);
  }
}

// biome-ignore format: each name beside its value
const headersOf = (limit: number, remaining: number, reset: number, policy: string, left: string): HeaderList => [
  'X-RateLimit-Limit', `${limit}`,
  'X-RateLimit-Remaining', `${remaining}`,
  'X-RateLimit-Reset', `${reset}`,
  'RateLimit-Policy', policy,
  'RateLimit', left,
];

const secondsTo = (endsAt: number, at: number): number => Math.max(0, Math.ceil((endsAt - at) / 1_000));
