/** Who asks: from the `Authorization` header to the key's record, or to the reason why not. */
import type { Clock } from '../clock.ts';
import type { ApiKey, Environment, Reading } from '../store/model.ts';
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

const WANTED = 'Send "Authorization: Bearer <key>".';
const MISSING = missing(`No API key was sent. ${WANTED}`);
const OTHER_SCHEME = missing(`The Authorization header is not of the Bearer scheme. ${WANTED}`);
const NO_KEY = missing(`The Authorization header names the Bearer scheme, but no API key. ${WANTED}`);
const MALFORMED = invalid(
  'This is not an API key: one begins with "ps_live_" or "ps_test_", and 36 letters and digits follow.',
);
const MISTYPED = invalid('The API key is mistyped: its checksum does not match. Copy it again, whole.');
const UNKNOWN = invalid('This server does not know the API key. Ask its operator for one.');
/** One message for both: only who holds the whole key gets to see it, and need not learn which it was. */
const ENDED = invalid('The API key was revoked or replaced. Use the key that took its place, or ask for a new one.');

interface Known {
  key: ApiKey;
  /** When a secret that was rotated out stops working; wall clock, as the operator set it. */
  endsAt: number;
}

export class Callers {
  readonly #read: Reading;
  readonly #environment: Environment;
  readonly #clock: Clock;
  /** Only headers that were good: what strangers send cannot fill it. */
  readonly #known = new Map<string, Known>();
  /** The newest of them: most often the next one too, and comparing is quicker than hashing. */
  #lastHeader = '';
  #last: Known | undefined;
  #keysVersion: number;

  constructor(read: Reading, environment: Environment, clock: Clock) {
    this.#read = read;
    this.#environment = environment;
    this.#clock = clock;
    this.#keysVersion = read.keysVersion;
  }

  identify(authorization: string | undefined): ApiKey | KeyRefusal {
    if (authorization === undefined) return MISSING;
    if (this.#keysVersion !== this.#read.keysVersion) {
      this.#known.clear();
      this.#last = undefined;
      this.#keysVersion = this.#read.keysVersion;
    }
    const known = this.#find(authorization);
    if ('code' in known) return known;
    const inForce = known.endsAt === FOREVER || known.endsAt > this.#clock.wall();
    return inForce ? known.key : ENDED;
  }

  #find(authorization: string): Known | KeyRefusal {
    if (this.#last !== undefined && authorization === this.#lastHeader) return this.#last;
    let known = this.#known.get(authorization);
    if (known === undefined) {
      const found = this.#search(authorization);
      if ('code' in found || authorization.length > MAX_CACHED_HEADER_CHARS) return found;
      if (this.#known.size >= MAX_CACHED_HEADERS) this.#known.clear();
      this.#known.set(authorization, found);
      known = found;
    }
    this.#last = known;
    this.#lastHeader = authorization;
    return known;
  }

  #search(authorization: string): Known | KeyRefusal {
    const bearer = BEARER.exec(authorization);
    if (bearer === null) return OTHER_SCHEME;
    const text = bearer[1] ?? '';
    if (text === '') return NO_KEY;
    const reading = readKey(text);
    if (reading === 'malformed') return MALFORMED;
    if (reading === 'mistyped') return MISTYPED;
    if (reading !== this.#environment) return otherEnvironment(reading, this.#environment);
    const digest = digestOf(text);
    const key = this.#read.keyByDigest(digest);
    if (key === undefined || key.environment !== this.#environment) return UNKNOWN;
    const secret = key.secrets.find((one) => one.digest === digest);
    if (key.revokedAt !== undefined || secret === undefined) return ENDED;
    return { key, endsAt: secret.endsAt ?? FOREVER };
  }
}

/** Tells the two answers of `identify` apart. */
export function isRefusal(answer: ApiKey | KeyRefusal): answer is KeyRefusal {
  return 'code' in answer;
}

function missing(message: string): KeyRefusal {
  return { code: 'missing_api_key', message };
}

function invalid(message: string): KeyRefusal {
  return { code: 'invalid_api_key', message };
}

function otherEnvironment(sent: Environment, here: Environment): KeyRefusal {
  return invalid(
    `This is a ${sent} key ("${KEY_PREFIX[sent]}"), but this is the ${here} service: send a "${KEY_PREFIX[here]}" key.`,
  );
}
