/** The options of a client and of a call, and their checks. */
import { environmentOf } from '../access/key-form.ts';
import { invalid, shown } from './errors.ts';
import type { Fetch, Limits } from './exchange.ts';
import type { AnyId } from './ids.ts';
import type { Timing } from './turns.ts';

/** The options of every call. Those given to the client are the defaults of its calls. */
export interface CallOptions {
  signal?: AbortSignal | null | undefined;
  /** How long the call may take with waits and tries, up to 23 h. Default 90,000: it outlives a minute window. */
  budgetMs?: number | undefined;
  /** How long one try may take, to the last byte of its reply. Default 15,000. */
  timeoutMs?: number | undefined;
  /** The most times that a call is sent again. Default 5. */
  retries?: number | undefined;
  /** Further headers. Those that the client sets itself are refused by name, except User-Agent. */
  headers?: Record<string, string> | Headers | undefined;
}

export interface CreateOptions extends CallOptions {
  /** The same for all tries of one intention. Without one, the client makes one for each call. */
  idempotencyKey?: string | undefined;
}

export interface ChangeOptions extends CallOptions {
  /** The `etag` of an earlier reply: the thing is changed only if it is unchanged since; else `precondition_failed`. */
  ifMatch?: string | undefined;
}

export interface ListOptions extends CallOptions {
  /** 1 to 100 things a page. Default 100, as each page costs a request. Pages that are not read are not asked for. */
  limit?: number | undefined;
  /** Begin behind this id. */
  after?: AnyId | undefined;
}

export interface ClientOptions extends Omit<CallOptions, 'signal'> {
  /** The address of the service, with `/v1` at its end or without. */
  baseUrl: string | URL;
  /** `ps_live_…` or `ps_test_…`. A mistyped key is refused here, by its checksum. */
  key: string;
  /** In place of the built-in one: to use a proxy, a certificate authority, or a client certificate. */
  fetch?: Fetch | undefined;
  /** Called after each try. */
  onExchange?: ((exchange: Exchange) => void) | undefined;
}

/** One try: the request, its reply, and the wait before the next try. */
export interface Exchange {
  operation: string;
  method: string;
  /** Which try it was: 1 is the first. */
  tries: number;
  /** 0: there was no reply. */
  status: number;
  /** The code of the error; undefined: the try succeeded. */
  code: string | undefined;
  requestId: string | undefined;
  ms: number;
  /** The least time until the client sends this again; undefined: it does not. */
  waitMs: number | undefined;
  limits: Limits | undefined;
}

/** 23 hours: the service keeps an Idempotency-Key for 24, and no request under it may come later. */
const MAX_MS = 82_800_000;

type Rule = [isRight: (value: never) => boolean, right: string];
const ofType = (type: string, right: string): Rule => [(value: unknown) => typeof value === type, right];
const whole = (least: number, most: number): Rule => [
  (value: number) => Number.isInteger(value) && value >= least && value <= most,
  `a whole number from ${least} to ${most}`,
];
const VISIBLE: Rule = [
  (value: unknown) => typeof value === 'string' && /^[!-~][ -~]*$/.test(value),
  'text of visible ASCII characters',
];
const isSignal = (value: Partial<AbortSignal> | null) =>
  value === null ||
  (typeof value.aborted === 'boolean' && Boolean(value.addEventListener) && Boolean(value.removeEventListener));

/** The rule of each option, except for after, baseUrl and key, which are checked where they are read. */
const RULES: Record<string, Rule> = {
  signal: [isSignal, 'an AbortSignal'],
  budgetMs: whole(1, MAX_MS),
  timeoutMs: whole(1, MAX_MS),
  retries: whole(0, 100),
  headers: [(value: unknown) => typeof value === 'object' && value !== null, 'an object of names and text, or Headers'],
  fetch: ofType('function', 'a function'),
  onExchange: ofType('function', 'a function'),
  limit: whole(1, 100),
  status: ofType('string', 'text'),
  idempotencyKey: VISIBLE,
  ifMatch: VISIBLE,
  etag: VISIBLE,
};
const OF_CALLS = ['signal', 'budgetMs', 'timeoutMs', 'retries', 'headers'];
const OF_CLIENT = ['baseUrl', 'key', 'fetch', 'onExchange', ...OF_CALLS.slice(1)];

export function check(name: string, value: unknown): void {
  const [isRight, right] = RULES[name] ?? [];
  if (value === undefined || isRight === undefined || isRight(value as never)) return;
  throw invalid(`${name} must be ${right} (got ${shown(value)})`);
}

type Checked<T> = Omit<T, 'headers'> & { headers: Headers };

/**
 * The options without those that are undefined. Refuses options that are unknown or break their rule, by name.
 * `takes`: the options of the operation beside those of all calls.
 */
export function checkOptions<T extends Pick<CallOptions, 'headers'>>(
  given: T,
  takes: readonly string[],
  known = [...OF_CALLS, ...takes],
): Checked<T> {
  if (typeof given !== 'object' || given === null) throw invalid(`options must be an object (got ${shown(given)})`);
  const options = { ...given };
  const unknown = Object.keys(options).filter((name) => !known.includes(name));
  if (unknown.length > 0) throw invalid(`unknown option ${unknown.join(', ')} (there are: ${known.join(', ')})`);
  for (const [name, value] of Object.entries(options)) {
    check(name, value);
    if (value === undefined) delete options[name as keyof T];
  }
  return { ...options, headers: headersIn(options.headers ?? {}) };
}

const OWN_HEADERS = /^(?:authorization|accept|content-type|idempotency-key|if-match|if-none-match)$/i;
/** Those that say how the request is sent: fetch sets them, or refuses them. */
const OF_FETCH = /^(?:content-length|transfer-encoding|expect|keep-alive|upgrade)$/i;

function headersIn(given: Headers | Record<string, string>): Headers {
  const pairs: [string, unknown][] = Symbol.iterator in given ? [...new Headers(given)] : Object.entries(given);
  const told = pairs.filter(([, value]) => value !== undefined);
  for (const [name, value] of told) {
    if (OWN_HEADERS.test(name)) throw invalid(`headers: ${name} is set by the client, or an option`);
    if (OF_FETCH.test(name)) throw invalid(`headers: ${name} is set by fetch`);
    if (typeof value !== 'string') throw invalid(`headers: ${name} must be text (got ${shown(value)})`);
  }
  return new Headers(told as [string, string][]);
}

/** The options of a client, with its base: a URL whose path ends in `/v1/`, below which all operations are. */
export function checkClient(options: ClientOptions) {
  if (typeof options !== 'object' || options === null) throw new TypeError('the client needs { baseUrl, key }');
  const { timing, ...given } = options as ClientOptions & { timing?: Partial<Timing> }; // `timing`: for tests
  let told: Checked<ClientOptions>;
  try {
    told = checkOptions(given, [], OF_CLIENT);
  } catch (error) {
    throw new RangeError((error as Error).message);
  }
  const { baseUrl, key, headers, fetch = globalThis.fetch, ...others } = told;
  const kind = typeof key === 'string' ? environmentOf(key) : 'malformed';
  if (kind === 'malformed') throw new TypeError('key must be ps_live_ or ps_test_ and 36 letters or digits');
  if (kind === 'mistyped') throw new TypeError('key was mistyped: its checksum is wrong');
  if (typeof fetch !== 'function') throw new TypeError('fetch must be given: this runtime has none built in');
  const send: Fetch = (url, init) => fetch(url, init); // a browser's fetch throws if it is called as a method
  return { base: baseOf(shown(baseUrl)), key, headers, calls: { ...others, timing, fetch: send } };
}

function baseOf(address: string): URL {
  const base = URL.canParse(address) ? new URL(address) : undefined;
  if (!base || !/^https?:$/.test(base.protocol) || base.username + base.password + base.search + base.hash !== '') {
    throw new TypeError('baseUrl must be an http or https address without user, query or fragment');
  }
  let end = base.pathname.length;
  while (base.pathname[end - 1] === '/') end--;
  base.pathname = `${base.pathname.slice(0, end).replace(/\/v1$/, '')}/v1/`;
  return base;
}
