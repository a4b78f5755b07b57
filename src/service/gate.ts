/** The gate: the key, then the limits. Without a valid key a request is counted by its address. */
import type { Socket } from 'node:net';
import { Addresses, clientAddress } from '../access/addresses.ts';
import { type Callers, UNKNOWN } from '../access/callers.ts';
import { LimitHeaders } from '../access/headers.ts';
import { keyName } from '../access/keys.ts';
import { type Decision, type Limiter, retryAfterSeconds } from '../access/limiter.ts';
import type { Clock } from '../clock.ts';
import { ApiError } from '../http/errors.ts';
import { errorReply, type Reply } from '../http/reply.ts';
import type { Incoming } from '../http/request.ts';
import type { Log } from '../store/engine.ts';
import { newest } from '../text.ts';
import type { Exchange } from './exchange.ts';

// These go out by the thousand, and within a second those of one limit are the same.
const banned = newest((seconds) => {
  return errorReply(
    tooMany('key_banned', 'this key is banned for a while: it kept sending requests after a 429', seconds),
  );
});
const limited = (window: 'minute' | 'day') =>
  newest((limit, seconds) => {
    return errorReply(tooMany('rate_limited', `the limit of ${limit} requests a ${window} is used up`, seconds));
  });
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
  async identify(exchange: Exchange, callers: Callers, limiter: Limiter): Promise<Decision | ApiError> {
    const { authorization } = exchange.headers;
    let caller = callers.identify(authorization);
    if (caller === UNKNOWN && limiter.refresh !== undefined) {
      await limiter.refresh();
      caller = callers.identify(authorization);
    }
    if (caller instanceof ApiError) return this.#unauthorized(exchange, caller);
    let decision = limiter.take(caller);
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
      this.#options.log.info('a ban began', { key: keyName(caller.id), seconds });
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
  new ApiError(code, `${why}; ask again in ${seconds} s`, ['Retry-After', `${seconds}`]);
