/** Who asks: from the `Authorization` header to the key's record, or to the reason why not. */
import type { ApiKey, Environment, Store } from '../store/model.ts';
import { digestOf, KEY_PREFIX, readKey } from './keys.ts';

export interface KeyRefusal {
  readonly code: 'missing_api_key' | 'invalid_api_key';
  readonly message: string;
}

export const MAX_CACHED_HEADERS = 10_000;
/** A key's header has 51 characters. With more blanks in it than this allows, it works but is not worth keeping. */
const MAX_CACHED_HEADER_CHARS = 64;

const FOREVER = Number.POSITIVE_INFINITY;
const BEARER = /^bearer(?: +(.*))?$/i;

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
/** The one refusal that may be outdated where keys are made by other processes too. */
export const UNKNOWN = invalid('This server does not know the API key. Ask its operator for one.');
/** One message for both: only who holds the whole key gets to see it, and need not learn which it was. */
const ENDED = invalid('The API key was revoked or replaced. Use the key that took its place, or ask for a new one.');

interface Known {
  key: ApiKey;
  /** Of the secret that was sent, and when that stops working, if it was rotated out (in the store's time). */
  digest: string;
  endsAt: number;
}

type Keys = Pick<Store, 'unix'> & { readonly read: Pick<Store['read'], 'keyByDigest' | 'keysVersion'> };

export class Callers {
  readonly #store: Keys;
  readonly #environment: Environment;
  /** Only headers that were good: what strangers send cannot fill it. */
  readonly #known = new Map<string, Known>();
  #keysVersion: number;

  constructor(store: Keys, environment: Environment) {
    this.#store = store;
    this.#environment = environment;
    this.#keysVersion = store.read.keysVersion;
  }

  identify(authorization: string | undefined): ApiKey | KeyRefusal {
    const known = this.#find(authorization);
    return isRefusal(known) ? known : this.#inForce(known);
  }

  /** The same, with the record of the caller's key as it will be when all that is accepted is durable. */
  identifyAhead(authorization: string | undefined, key: ApiKey | undefined): ApiKey | KeyRefusal {
    const known = this.#find(authorization);
    if (isRefusal(known)) return known;
    const ahead = key === known.key ? known : secretOf(key, known.digest);
    return ahead === undefined ? ENDED : this.#inForce(ahead);
  }

  #inForce({ key, endsAt }: Known): ApiKey | KeyRefusal {
    return endsAt === FOREVER || endsAt > this.#store.unix() ? key : ENDED;
  }

  #find(authorization: string | undefined): Known | KeyRefusal {
    if (this.#keysVersion !== this.#store.read.keysVersion) {
      this.#known.clear();
      this.#keysVersion = this.#store.read.keysVersion;
    }
    if (authorization === undefined) return MISSING;
    const known = this.#known.get(authorization);
    if (known !== undefined) return known;
    const found = this.#search(authorization);
    if (isRefusal(found) || authorization.length > MAX_CACHED_HEADER_CHARS) return found;
    if (this.#known.size >= MAX_CACHED_HEADERS) this.#known.clear();
    this.#known.set(authorization, found);
    return found;
  }

  #search(authorization: string): Known | KeyRefusal {
    const bearer = BEARER.exec(authorization);
    if (bearer === null) return OTHER_SCHEME;
    const text = bearer[1] ?? '';
    if (text === '') return NO_KEY;
    const reading = readKey(text);
    if (reading === 'malformed') return MALFORMED;
    if (reading === 'mistyped') return MISTYPED;
    const here = this.#environment;
    if (reading !== here) {
      const wanted = `this is the ${here} service: send a "${KEY_PREFIX[here]}" key.`;
      return invalid(`This is a ${reading} key ("${KEY_PREFIX[reading]}"), but ${wanted}`);
    }
    const digest = digestOf(text);
    const key = this.#store.read.keyByDigest(digest);
    if (key === undefined || key.environment !== here) return UNKNOWN;
    return secretOf(key, digest) ?? ENDED;
  }
}

function secretOf(key: ApiKey | undefined, digest: string): Known | undefined {
  const secret = key?.secrets.find((one) => one.digest === digest);
  if (key === undefined || key.revokedAt !== undefined || secret === undefined) return undefined;
  return { key, digest, endsAt: secret.endsAt ?? FOREVER };
}

/** Tells a refusal from anything else that may be found. */
export function isRefusal(answer: object): answer is KeyRefusal {
  return 'code' in answer;
}
