/** Authentication: from the `Authorization` header to the key, or to the reason why it is refused. */
import { ApiError } from '../http/errors.ts';
import type { ApiKey, Environment, Store } from '../store/model.ts';
import { digestOf, environmentOf, KEY_PREFIX } from './keys.ts';

const MAX_KNOWN_HEADERS = 10_000;
/** A header with a key has 51 characters. With more blanks it may be longer: it then works, but is not remembered. */
const MAX_KNOWN_HEADER_CHARS = 64;

const BEARER = /^bearer(?: +([^ ].*)?)?$/is;
const CHALLENGE = 'Bearer realm="petstore"';

const missing = (message: string) => new ApiError('missing_api_key', message, ['WWW-Authenticate', CHALLENGE]);
const invalid = (message: string) =>
  new ApiError('invalid_api_key', message, ['WWW-Authenticate', `${CHALLENGE}, error="invalid_token"`]);

const WANTED = 'Send "Authorization: Bearer <key>".';
const MISSING = missing(`No API key was sent. ${WANTED}`);
const OTHER_SCHEME = missing(`The Authorization header is not of the Bearer scheme. ${WANTED}`);
const NO_KEY = missing(`The Authorization header names the Bearer scheme, but no API key. ${WANTED}`);
const MALFORMED = invalid(
  'This is not an API key: one begins with "ps_live_" or "ps_test_", and 36 letters and digits follow.',
);
const MISTYPED = invalid('The API key is mistyped: its checksum does not match. Copy it again, whole.');
/** With replicas, another one may have just made this key: the gate then reads the newest keys, and looks once more. */
export const UNKNOWN = invalid('This server does not know the API key. Ask its operator for one.');
/** One message for a revoked and a replaced key: only the holder of the whole key gets it, and need not know which. */
const ENDED = invalid('The API key was revoked or replaced. Use the key that took its place, or ask for a new one.');

type Keys = Pick<Store['read']['keys'], 'find'>;

/** A key, and the digest of that of its secrets which a request has brought. */
export interface Caller {
  readonly key: ApiKey;
  readonly digest: string;
}

export class Callers {
  readonly #store: Store;
  readonly #environment: Environment;
  /** For speed: the digest of the key in a header, which saves a SHA-256 for each request. */
  readonly #digests = new Map<string, string>();

  constructor(store: Store, environment: Environment) {
    this.#store = store;
    this.#environment = environment;
  }

  identify(authorization = ''): Caller | ApiError {
    const digest = this.#digests.get(authorization) ?? this.#digestIn(authorization);
    if (typeof digest !== 'string') return digest;
    const key = this.#store.read.keys.find(digest);
    if (key === undefined) return UNKNOWN;
    return this.#mayUse(key, digest) ? { key, digest } : ENDED;
  }

  /** Throws if the caller's key has ended meanwhile. `keys`: as they are now, or as a transaction sees them. */
  check({ digest }: Caller, keys: Keys = this.#store.read.keys): void {
    const key = keys.find(digest);
    if (key === undefined || !this.#mayUse(key, digest)) throw ENDED;
  }

  #mayUse({ secrets, revokedAt }: ApiKey, digest: string): boolean {
    const secret = secrets.find((one) => one.digest === digest);
    if (secret === undefined || revokedAt !== undefined) return false;
    return secret.endsAt === undefined || secret.endsAt > this.#store.now();
  }

  #digestIn(authorization: string): string | ApiError {
    if (authorization === '') return MISSING;
    const bearer = BEARER.exec(authorization);
    if (bearer === null) return OTHER_SCHEME;
    const text = bearer[1] ?? '';
    if (text === '') return NO_KEY;
    const reading = environmentOf(text);
    if (reading === 'malformed') return MALFORMED;
    if (reading === 'mistyped') return MISTYPED;
    const here = this.#environment;
    if (reading !== here) {
      const wanted = `this is the ${here} service: send a "${KEY_PREFIX[here]}" key.`;
      return invalid(`This is a ${reading} key ("${KEY_PREFIX[reading]}"), but ${wanted}`);
    }
    const digest = digestOf(text);
    if (this.#digests.size >= MAX_KNOWN_HEADERS) this.#digests.clear();
    if (authorization.length <= MAX_KNOWN_HEADER_CHARS) this.#digests.set(authorization, digest);
    return digest;
  }
}
