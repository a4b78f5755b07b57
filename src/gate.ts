/** Who asks, and how often: the key first, then the limits. What both come to is told in headers. */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Addresses } from './access/addresses.ts';
import { type Callers, isRefusal, type KeyRefusal } from './access/callers.ts';
import { clientAddress } from './access/client-address.ts';
import { type Decision, type Limiter, retryAfterSeconds } from './access/limits.ts';
import { WallTime } from './access/wall.ts';
import type { Clock } from './clock.ts';
import { ApiError } from './http/errors.ts';
import { LimitHeaders, type LimitTexts } from './http/limitheaders.ts';
import { errorReply, type Reply } from './http/reply.ts';
import type { ApiKey } from './store/model.ts';

const CHALLENGE = 'Bearer realm="petstore"';

interface GateOptions {
  clock: Clock;
  addresses: Addresses;
  /** How many proxies in front are trusted to say where a request came from. */
  trustProxy: number;
  onBan: (key: ApiKey, seconds: number) => void;
}

/** What the gate finds out about a request. */
interface Admission {
  req: IncomingMessage;
  caller: ApiKey | undefined;
  /** The limits of whoever asks. */
  limits: LimitTexts | undefined;
}

export class Gate {
  readonly #options: GateOptions;
  readonly #headers: LimitHeaders;
  #newestMessage = '';
  #newest: Reply | undefined;

  constructor(options: GateOptions) {
    this.#options = options;
    this.#headers = new LimitHeaders(new WallTime(options.clock));
  }

  /** Fills in the admission. Gives back the refusal, where there is one. */
  admit(admission: Admission, callers: Callers, limiter: Limiter): Reply | undefined {
    const caller = callers.identify(admission.req.headers.authorization);
    if (isRefusal(caller)) return this.#refuseUnknown(admission, caller);
    admission.caller = caller;
    const decision = limiter.take(caller);
    admission.limits = this.#headers.ofKey(decision);
    if (decision.verdict === 'admitted') return undefined;
    const seconds = retryAfterSeconds(decision.retryAt, decision.at);
    if (decision.banBegan) this.#options.onBan(caller, seconds);
    return decision.verdict === 'banned'
      ? this.#tooMany('key_banned', 'this key is banned for a while: it asked on after it was told to wait', seconds)
      : this.#tooMany('rate_limited', limitMessage(decision), seconds);
  }

  /** Without a valid key it is the address that is counted. */
  #refuseUnknown(admission: Admission, refusal: KeyRefusal): Reply {
    const { over, window, retryAt } = this.#options.addresses.refused(
      this.addressOf(admission.req, admission.req.socket),
    );
    const now = this.#options.clock.now();
    admission.limits = this.#headers.ofAddress(window, now);
    if (over) {
      const why = `the limit of ${window.limit} requests a minute without a valid key is used up`;
      return this.#tooMany('rate_limited', why, retryAfterSeconds(retryAt, now));
    }
    return errorReply(unauthorized(refusal));
  }

  /** Throws where the key of a caller who was admitted has ended since. Nothing is counted for that. */
  askAgain({ headers }: IncomingMessage, callers: Callers): void {
    const caller = callers.identify(headers.authorization);
    if (isRefusal(caller)) throw unauthorized(caller);
  }

  /** Refusals by a limit come by the thousand: no Error is made for them, and the newest serves while it is true. */
  #tooMany(code: 'rate_limited' | 'key_banned', why: string, seconds: number): Reply {
    const message = `${why}; ask again in ${seconds} s`;
    if (message !== this.#newestMessage) {
      this.#newestMessage = message;
      this.#newest = errorReply({ code, message, status: 429, headers: ['Retry-After', String(seconds)] });
    }
    return this.#newest as Reply;
  }

  /** For a reply that no key paid for: what the address has left. */
  limitsWithoutKey(req: IncomingMessage | undefined, socket: Socket): LimitTexts {
    const { window } = this.#options.addresses.look(this.addressOf(req, socket));
    return this.#headers.ofAddress(window, this.#options.clock.now());
  }

  /** Where a request came from; undefined where none could be read. */
  addressOf(req: IncomingMessage | undefined, socket: Socket): string {
    const forwarded = req?.headers['x-forwarded-for'] as string | undefined; // node joins its lines
    const lines = forwarded === undefined ? undefined : [forwarded];
    return clientAddress(socket.remoteAddress, lines, this.#options.trustProxy);
  }
}

function unauthorized({ code, message }: KeyRefusal): ApiError {
  const challenge = code === 'missing_api_key' ? CHALLENGE : `${CHALLENGE}, error="invalid_token"`;
  return new ApiError(code, message, ['WWW-Authenticate', challenge]);
}

function limitMessage({ binding, minute, day }: Decision): string {
  return binding === 'minute'
    ? `the limit of ${minute.limit} requests a minute is used up`
    : `the limit of ${day.limit} requests a day is used up`;
}
