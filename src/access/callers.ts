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
export const ENDED = invalid(
  'The API key was revoked or replaced. Use the key that took its place, or ask for a new one.',
);

type Keys = Pick<Store, 'now'> & { readonly read: { readonly keys: Pick<Store['read']['keys'], 'find'> } };

/** A key, and which of its secrets a request has brought. */
export interface Caller {
  readonly key: ApiKey;
  readonly digest: string;
  /** When that secret ends, if it was rotated out. */
  readonly endsAt: number;
}

export class Callers {
  readonly #store: Keys;
  readonly #environment: Environment;
  /** For speed: by the header, which saves a SHA-256 for each request. One whose key has changed is looked up anew. */
  readonly #known = new Map<string, Caller>();

  constructor(store: Keys, environment: Environment) {
    this.#store = store;
    this.#environment = environment;
  }

  identify(authorization = ''): Caller | ApiError {
    const { keys } = this.#store.read;
    const known = this.#known.get(authorization);
    if (known !== undefined && keys.find(known.digest) === known.key && this.#isRunning(known)) return known;
    const digest = this.#digestIn(authorization);
    if (typeof digest !== 'string') return digest;
    const key = keys.find(digest);
    if (key === undefined) return UNKNOWN;
    const caller = callerOf(key, digest);
    if (caller === undefined || !this.#isRunning(caller)) return ENDED;
    if (this.#known.size >= MAX_KNOWN_HEADERS) this.#known.clear();
    if (authorization.length <= MAX_KNOWN_HEADER_CHARS) this.#known.set(authorization, caller);
    return caller;
  }

  /** True if a caller that was identified before is none any more. */
  hasEnded(caller: Caller): boolean {
    const key = this.#store.read.keys.find(caller.digest);
    const now = key === caller.key ? caller : key && callerOf(key, caller.digest);
    return now === undefined || !this.#isRunning(now);
  }

  /** Throws unless the caller's secret is one of this row: its key as a transaction sees it. */
  check({ digest }: Caller, row: ApiKey | undefined): void {
    const caller = row === undefined ? undefined : callerOf(row, digest);
    if (caller === undefined || !this.#isRunning(caller)) throw ENDED;
  }

  #isRunning({ endsAt }: Caller): boolean {
    return endsAt === Number.POSITIVE_INFINITY || endsAt > this.#store.now();
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
    if (reading === here) return digestOf(text);
    const wanted = `this is the ${here} service: send a "${KEY_PREFIX[here]}" key.`;
    return invalid(`This is a ${reading} key ("${KEY_PREFIX[reading]}"), but ${wanted}`);
  }
}

function callerOf(key: ApiKey, digest: string): Caller | undefined {
  const secret = key.secrets.find((one) => one.digest === digest);
  if (secret === undefined || key.revokedAt !== undefined) return undefined;
  return { key, digest, endsAt: secret.endsAt ?? Number.POSITIVE_INFINITY };
}
