/** Authentication: from the `Authorization` header to the record of the key, or to the reason why it is refused. */
import type { ApiKey, Environment, Store } from '../store/model.ts';
import { environmentOf, KEY_PREFIX } from './key-form.ts';
import { digestOf } from './keys.ts';

export interface KeyRefusal {
  readonly code: 'missing_api_key' | 'invalid_api_key';
  readonly message: string;
}

export const MAX_KNOWN_HEADERS = 10_000;
/** The number of requests between two searches for cached headers whose key was revoked or replaced. */
const SWEEP_EVERY_REQUESTS = 2 ** 16;
/** A header with a key has 51 characters. With more blanks it may be longer: it then works, but is not cached. */
const MAX_KNOWN_HEADER_CHARS = 64;

const BEARER = /^bearer(?: +([^ ].*)?)?$/is;

const missing = (message: string): KeyRefusal => ({ code: 'missing_api_key', message });
const invalid = (message: string): KeyRefusal => ({ code: 'invalid_api_key', message });
const WANTED = 'Send "Authorization: Bearer <key>".';
const MISSING = missing(`No API key was sent. ${WANTED}`);
const OTHER_SCHEME = missing(`The Authorization header is not of the Bearer scheme. ${WANTED}`);
const NO_KEY = missing(`The Authorization header names the Bearer scheme, but no API key. ${WANTED}`);
const MALFORMED = invalid(
  'This is not an API key: one begins with "ps_live_" or "ps_test_", and 36 letters and digits follow.',
);
const MISTYPED = invalid('The API key is mistyped: its checksum does not match. Copy it again, whole.');
/** The only refusal that may be out of date: where other processes make keys too, one of them may just have made it. */
export const UNKNOWN = invalid('This server does not know the API key. Ask its operator for one.');
/** One message for a revoked and a replaced key: only the holder of the whole key gets it, and need not know which. */
const ENDED = invalid('The API key was revoked or replaced. Use the key that took its place, or ask for a new one.');

type Keys = Pick<Store, 'unix'> & { read: { keys: Pick<Store['read']['keys'], 'byDigest'> } };

export class Callers {
  readonly #store: Keys;
  readonly #environment: Environment;
  /** Digests by header, which saves a SHA-256 a request. Only of valid keys, so that strangers cannot fill the map. */
  readonly #digests = new Map<string, string>();
  #asked = 0;

  constructor(store: Keys, environment: Environment) {
    this.#store = store;
    this.#environment = environment;
  }

  identify(authorization = ''): ApiKey | KeyRefusal {
    const known = this.#digests.get(authorization);
    const digest = known ?? this.#digestIn(authorization);
    if (typeof digest !== 'string') return digest;
    if (++this.#asked % SWEEP_EVERY_REQUESTS === 0) this.#sweep();
    const key = this.#store.read.keys.byDigest.get(digest);
    const isGood = key !== undefined && this.#isInForce(digest, key);
    if (!isGood && known !== undefined) this.#digests.delete(authorization);
    if (key === undefined) return UNKNOWN;
    if (isGood && known === undefined) this.#keep(authorization, digest);
    return isGood ? key : ENDED;
  }

  /** Like `identify`. `key`: the caller's record as it will be when all accepted writes are durable. */
  identifyAhead(authorization = '', key: ApiKey | undefined): ApiKey | KeyRefusal {
    const digest = this.#digests.get(authorization) ?? this.#digestIn(authorization);
    if (typeof digest !== 'string') return digest;
    return key !== undefined && this.#isInForce(digest, key) ? key : ENDED;
  }

  #isInForce(digest: string, { revokedAt, secrets }: ApiKey): boolean {
    if (revokedAt !== undefined) return false;
    const secret = secrets.find((one) => one.digest === digest);
    return secret !== undefined && (secret.endsAt === undefined || secret.endsAt > this.#store.unix());
  }

  /** Forgets headers whose key was revoked or replaced: none must stay in memory, even if nobody sends it again. */
  #sweep(): void {
    for (const [authorization, digest] of this.#digests) {
      const key = this.#store.read.keys.byDigest.get(digest);
      if (key === undefined || !this.#isInForce(digest, key)) this.#digests.delete(authorization);
    }
  }

  #keep(authorization: string, digest: string): void {
    if (authorization.length > MAX_KNOWN_HEADER_CHARS) return;
    if (this.#digests.size >= MAX_KNOWN_HEADERS) this.#digests.clear();
    this.#digests.set(authorization, digest);
  }

  #digestIn(authorization: string): string | KeyRefusal {
    if (authorization === '') return MISSING;
    const bearer = BEARER.exec(authorization);
    if (bearer === null) return OTHER_SCHEME;
    const text = bearer[1] ?? '';
    if (text === '') return NO_KEY;
    const reading = environmentOf(text);
    if (reading === 'malformed') return MALFORMED;
    if (reading === 'mistyped') return MISTYPED;
    const here = this.#environment;
    if (reading === here) return digestOf(text);
    const wanted = `this is the ${here} service: send a "${KEY_PREFIX[here]}" key.`;
    return invalid(`This is a ${reading} key ("${KEY_PREFIX[reading]}"), but ${wanted}`);
  }
}

/** True if the answer is a refusal, and no key. */
export function isRefusal(answer: object): answer is KeyRefusal {
  return 'code' in answer;
}
