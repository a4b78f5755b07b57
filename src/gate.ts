/** Authentication, then rate limits; and the limit headers of every reply. */
import type { Socket } from 'node:net';
import { Addresses, type CountedTogether, PAGES_PER_MINUTE } from './access/addresses.ts';
import { type Callers, isRefusal, type KeyRefusal, UNKNOWN } from './access/callers.ts';
import { clientAddress } from './access/client-address.ts';
import { type Decision, type Limiter, retryAfterSeconds } from './access/limits.ts';
import type { Clock } from './clock.ts';
import type { Exchange } from './exchange.ts';
import { ApiError } from './http/errors.ts';
import type { Incoming } from './http/messages.ts';
import { errorReply, prepared, type Reply } from './http/reply.ts';
import { addressLimits, keyLimits, resetOf } from './limit-headers.ts';
import type { ApiKey, Store } from './store/model.ts';

const CHALLENGE = 'Bearer realm="petstore"';
const COUNTED_TOGETHER =
  'too many addresses to count each for itself: some share an allowance; counts of their requests since the start';
const BANNED = 'this key is banned for a while: it kept sending requests after a 429';

export interface GateOptions {
  clock: Clock;
  /** How many proxies in front are trusted to say where a request came from. */
  trustProxy: number;
  onBan: (key: ApiKey, seconds: number) => void;
  warn: (message: string, fields: Record<string, unknown>) => void;
}

/** The header in which a key was sent, and that key's id. */
interface Sender {
  authorization: string | undefined;
  caller: string;
}

export class Gate {
  readonly #options: GateOptions;
  /** Two counts by address: of requests without a valid key, and of requests for large pages. */
  readonly #addresses: Addresses;
  readonly #largePages: Addresses;
  #newestMessage = '';
  #newest: Reply | undefined;

  constructor(options: GateOptions) {
    this.#options = options;
    const { clock, warn } = options;
    const counting = (of: string) => ({
      clock,
      onCountedTogether: (requests: CountedTogether) => warn(COUNTED_TOGETHER, { of, ...requests }),
    });
    this.#addresses = new Addresses(counting('requests without a valid key'));
    this.#largePages = new Addresses({ ...counting('pages'), perMinute: PAGES_PER_MINUTE });
  }

  /** For the metrics: the requests since the start that were counted in an allowance of many addresses. */
  get countedTogether() {
    const [keyless, pages] = [this.#addresses.together, this.#largePages.together];
    const ofKeyless = { keyless_network: keyless.ofNetworks, keyless_all: keyless.ofAll };
    return { ...ofKeyless, pages_network: pages.ofNetworks, pages_all: pages.ofAll };
  }

  /** Fills in `caller`, `limits` and `resetsAt`. Returns the refusal, if there is one. */
  admit(exchange: Exchange, callers: Callers, limiter: Limiter): Reply | undefined | Promise<Reply | undefined> {
    const { authorization } = exchange.req.headers;
    const admitCaller = (caller: ApiKey | KeyRefusal) => {
      if (isRefusal(caller)) return this.#refuseUnknown(exchange, caller);
      const decision = limiter.take(caller);
      if (!(decision instanceof Promise)) return this.#tellLimits(exchange, caller, decision);
      return decision.then((later) => {
        const still = callers.identify(authorization); // its key may have ended meanwhile
        return isRefusal(still) ? this.#refuseUnknown(exchange, still) : this.#tellLimits(exchange, still, later);
      });
    };
    const caller = callers.identify(authorization);
    if (caller !== UNKNOWN || limiter.fresh === undefined) return admitCaller(caller);
    // Another process may have made this key a moment ago.
    return limiter.fresh().then(() => admitCaller(callers.identify(authorization)));
  }

  #tellLimits(exchange: Exchange, caller: ApiKey, decision: Decision): Reply | undefined {
    exchange.caller = caller;
    exchange.req.from.hasShownKey = true;
    exchange.limits = keyLimits(decision);
    if (decision.verdict === 'admitted') return undefined;
    exchange.resetsAt = resetOf(decision);
    const seconds = retryAfterSeconds(decision.retryAt, decision.at);
    exchange.beginsBan = decision.banBegan;
    if (decision.banBegan) this.#options.onBan(caller, seconds);
    if (decision.verdict === 'banned') return this.#tooMany('key_banned', BANNED, seconds);
    const why = `the limit of ${decision[decision.binding].limit} requests a ${decision.binding} is used up`;
    return this.#tooMany('rate_limited', why, seconds);
  }

  /** Without a valid key the request is counted against its address. */
  #refuseUnknown(exchange: Exchange, refusal: KeyRefusal): Reply {
    const allowance = this.#addresses.count(this.addressOf(exchange.req, exchange.req.socket));
    exchange.limits = addressLimits(allowance);
    if (!allowance.over) return errorReply(unauthorized(refusal));
    const why = `the limit of ${allowance.limit} requests a minute without a valid key is used up`;
    return this.#tooMany('rate_limited', why, retryAfterSeconds(allowance.endsAt, allowance.at));
  }

  /** Counts a request for a large page, which needs no key. Returns a 429 if its address has had too many. */
  countLargePage(exchange: Exchange): Reply | undefined {
    const allowance = this.#largePages.count(this.addressOf(exchange.req, exchange.req.socket));
    if (!allowance.over) return undefined;
    exchange.limits = addressLimits(allowance, 'pages');
    const why = `the limit of ${allowance.limit} pages a minute for an address is used up`;
    return this.#tooMany('rate_limited', why, retryAfterSeconds(allowance.endsAt, allowance.at));
  }

  /** The `write` of one caller. It checks the key again, which may have ended while the body was arriving. */
  writer({ authorization, caller }: Sender, callers: Callers, store: Store): Store['write'] {
    return (decide) =>
      store.write((ahead) => {
        const still = callers.identifyAhead(authorization, ahead.keys.get(caller));
        if (isRefusal(still)) throw unauthorized(still);
        return decide(ahead);
      });
  }

  /** A 429. They come by the thousand, so none makes an Error, and the newest is sent again if its text is the same. */
  #tooMany(code: 'rate_limited' | 'key_banned', why: string, seconds: number): Reply {
    const message = `${why}; ask again in ${seconds} s`;
    if (message !== this.#newestMessage) {
      this.#newestMessage = message;
      this.#newest = prepared(errorReply({ code, message, headers: ['Retry-After', String(seconds)] }));
    }
    return this.#newest as Reply;
  }

  /** The limit headers of a reply to a request without a valid key: how many refusals its address has left. */
  limitsWithoutKey(req: Incoming | undefined, socket: Socket): string {
    return addressLimits(this.#addresses.look(this.addressOf(req, socket)));
  }

  /** The address under which a request is counted. */
  addressOf(req: Incoming | undefined, socket: Socket): string {
    const forwarded = req?.headers['x-forwarded-for']; // its lines are joined
    return clientAddress(socket.remoteAddress, forwarded, this.#options.trustProxy);
  }
}

function unauthorized({ code, message }: KeyRefusal): ApiError {
  const challenge = code === 'missing_api_key' ? CHALLENGE : `${CHALLENGE}, error="invalid_token"`;
  return new ApiError(code, message, ['WWW-Authenticate', challenge]);
}
