/** What a client and a call may be told, and that it can be meant. */
import { environmentOf } from '../access/key-form.ts';
import { invalid } from './errors.ts';
import type { Fetch, Limits } from './exchange.ts';
import type { AnyId } from './ids.ts';

/** What each call may be told; of the client, it holds for all calls that are told nothing else. */
export interface CallOptions {
  signal?: AbortSignal | null | undefined;
  /** How long the call may take, waits and all tries together. Default 90,000: it outlives a minute window. */
  budgetMs?: number | undefined;
  /** How long one try may take, to the last byte of its reply. Default 15,000. */
  timeoutMs?: number | undefined;
  /** How often it is sent again, at most. Default 5. */
  retries?: number | undefined;
  /** Beside the client's own, which none of these replaces but User-Agent. */
  headers?: Record<string, string> | undefined;
}

export interface CreateOptions extends CallOptions {
  /** The same for all tries of one intention. Without one, the client makes one for each call. */
  idempotencyKey?: string | undefined;
}

export interface ChangeOptions extends CallOptions {
  /** An `etag` that a reply told: it is changed only while it is still as that reply said, else `precondition_failed`. */
  ifMatch?: string | undefined;
}

export interface ListOptions extends CallOptions {
  /** 1 to 100 things a page. Without it 100, as every page costs one request. Who stops reading asks for no more. */
  limit?: number | undefined;
  /** Begin behind this id. */
  after?: AnyId | undefined;
}

export interface ClientOptions extends Omit<CallOptions, 'signal'> {
  /** Where the service is, with `/v1` at its end or without. */
  baseUrl: string | URL;
  /** `ps_live_…` or `ps_test_…`. One that was mistyped is refused here, by its checksum. */
  key: string;
  /** In place of the built-in one: to use a proxy, a certificate authority, or a client certificate. */
  fetch?: Fetch | undefined;
  /** Called after each try. */
  onExchange?: ((exchange: Exchange) => void) | undefined;
}

/** One try: what was asked, what came, and what the client does next. */
export interface Exchange {
  operation: string;
  method: string;
  /** Which try it was: 1 is the first. */
  tries: number;
  /** 0: there was no reply. */
  status: number;
  /** What was wrong; undefined: nothing. */
  code: string | undefined;
  requestId: string | undefined;
  ms: number;
  /** How long the client waits before it sends this again, at least; undefined: it does not. */
  waitMs: number | undefined;
  limits: Limits | undefined;
}

const OF_CALLS = ['signal', 'budgetMs', 'timeoutMs', 'retries', 'headers'];
const OF_CLIENT = ['baseUrl', 'key', 'fetch', 'onExchange', ...OF_CALLS.slice(1)];
/** Twelve days; timers of twice that fire at once. */
const MAX_MS = 2 ** 30;

/** Refuses options that are unknown, or cannot be meant. `takes`: what the operation takes beside those of all calls. */
export function checkOptions(given: CallOptions, takes: readonly string[], known = [...OF_CALLS, ...takes]): void {
  if (typeof given !== 'object' || given === null) throw invalid(`options must be an object (got ${given})`);
  const unknown = Object.keys(given).filter((name) => !known.includes(name) && name !== 'timing');
  if (unknown.length > 0) throw invalid(`unknown option ${unknown.join(', ')} (there are: ${known.join(', ')})`);
  const { budgetMs, timeoutMs, retries, signal } = given;
  for (const [name, value, least, most] of [
    ['budgetMs', budgetMs, 1, MAX_MS],
    ['timeoutMs', timeoutMs, 1, MAX_MS],
    ['retries', retries, 0, 100],
  ] as const) {
    if (value === undefined || (Number.isInteger(value) && value >= least && value <= most)) continue;
    throw invalid(`${name} must be a whole number from ${least} to ${most} (got ${value})`);
  }
  if (signal && !(signal instanceof AbortSignal)) throw invalid('signal must be an AbortSignal');
}

/** The options of a client. Gives its base: a URL whose path ends in `/v1/`, below which all operations are. */
export function checkClient(options: ClientOptions): URL {
  if (typeof options !== 'object' || options === null) throw new TypeError('the client needs { baseUrl, key }');
  try {
    checkOptions(options, [], OF_CLIENT);
  } catch (error) {
    throw new RangeError((error as Error).message);
  }
  const { baseUrl, key, fetch = globalThis.fetch, onExchange = () => {} } = options;
  const kind = typeof key === 'string' ? environmentOf(key) : 'malformed';
  if (kind === 'malformed') throw new TypeError('key must be ps_live_ or ps_test_ and 36 letters or digits');
  if (kind === 'mistyped') throw new TypeError('key was mistyped: its checksum is wrong');
  if (typeof fetch !== 'function') throw new TypeError('fetch must be a function, where there is none built in');
  if (typeof onExchange !== 'function') throw new TypeError('onExchange must be a function');
  const base = URL.canParse(String(baseUrl)) ? new URL(baseUrl) : undefined;
  if (!base || !/^https?:$/.test(base.protocol) || base.username + base.search + base.hash !== '') {
    throw new TypeError('baseUrl must be an http or https address without user, query or fragment');
  }
  base.pathname = base.pathname.replace(/(?:\/v1)?\/*$/, '/v1/');
  return base;
}
