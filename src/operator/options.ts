/** All options of all commands: how a text becomes a value, and what `--help` says of it. */
import * as v from 'valibot';
import { MAX_REQUESTS_PER_WINDOW, PLAN_LIMITS } from '../access/limiter.ts';
import { DAY_MS, durationMs } from '../clock.ts';
import { ENVIRONMENTS, PET_STATUSES, PLANS } from '../store/model.ts';
import { count } from '../text.ts';

export interface Option<T = unknown> {
  /** `switch`: its name alone turns it on. */
  kind: 'defaulted' | 'optional' | 'required' | 'switch';
  /** The placeholder of its value in `--help`. */
  value: string;
  help: string;
  /** The texts that are allowed, in words. */
  allowed: string;
  schema: v.GenericSchema<string, T>;
  /** The default: a text that could be given; of an optional one, words for `--help`. */
  fallback?: string;
  /** No message repeats its value. */
  isSecret?: boolean;
}

export type Options = Record<string, Option>;
export type Values<O> = { [K in keyof O]: O[K] extends Option<infer T> ? T : never };

/** How a text becomes a value. */
type Type<T> = Pick<Option<T>, 'allowed' | 'schema'>;

function type<T>(allowed: string, pattern: RegExp, to: (text: string) => T, fits?: (value: T) => boolean): Type<T> {
  return { allowed, schema: v.pipe(v.string(), v.regex(pattern), v.transform(to), v.check(fits ?? (() => true))) };
}

const text = (allowed: string, pattern: RegExp) => type(allowed, pattern, String);

const integer = (min: number, max: number) =>
  type(`a whole number, ${min} to ${max}`, /^\d{1,15}$/, Number, (number) => number >= min && number <= max);

export function oneOf<const T extends string>(values: readonly T[]): Type<T> {
  const allowed = values.join(', ').replace(/, ([^,]+)$/, ' or $1');
  return type(allowed, new RegExp(`^(${values.join('|')})$`), (text) => text as T);
}

const yesOrNo = type('true or false', /^(true|false|1|0)$/, (text) => text === 'true' || text === '1');

const duration = (maxDays: number) =>
  type(`a time such as 90s, 15m, 24h or 7d, up to ${maxDays}d`, /./, durationMs, (ms) => ms <= maxDays * DAY_MS);

/** Not a URL, which belongs to `--store`: its password would become part of a file's name. */
const path = text('a path', /^(?!\w[\w+.-]*:\/\/)[^\0]{1,4096}$/s);

const hostPort = type(
  'HOST:PORT, such as 127.0.0.1:9180 or [::1]:9180',
  /^(?:\[[0-9A-Fa-f:.]+\]|[\w.-]+):\d{1,5}$/,
  (text) => {
    const cut = text.lastIndexOf(':');
    return { host: text.slice(0, cut).replace(/[[\]]/g, ''), port: Number(text.slice(cut + 1)) };
  },
  ({ port }) => port <= 65_535,
);

/** Stricter than URLs, which allow hosts such as `*`. */
const WEB = 'https?://(?:[a-z0-9._-]+|\\[[0-9a-f:.]+\\])(?::\\d+)?';

const origin = type(
  'an origin such as https://shop.example, or *',
  new RegExp(`^(?:\\*|${WEB})$`),
  String,
  (text) => text === '*' || (URL.canParse(text) && new URL(text).origin === text),
);

const baseUrl = type(
  'an http or https address that ends in /v1, such as https://api.example/v1',
  new RegExp(`^${WEB}(?:/[^?#]*)?/v1$`),
  String,
  (text) => URL.canParse(text) && new URL(text).href === text,
);

const option = <T>(type: Type<T>, value: string, help: string, fallback: string): Option<T> => {
  return { kind: 'defaulted', ...type, value, help, fallback };
};
const required = <T>(type: Type<T>, value: string, help: string): Option<T> => {
  return { kind: 'required', ...type, value, help };
};
export const optional = <T>(type: Type<T>, value: string, help: string, fallback?: string): Option<T | undefined> => {
  return { kind: 'optional', ...type, value, help, fallback };
};
export const flag = (help: string): Option<boolean> => ({
  kind: 'switch',
  ...yesOrNo,
  value: '',
  help,
  fallback: 'false',
});

const publishedPlans = Object.keys(PLAN_LIMITS) as (keyof typeof PLAN_LIMITS)[];
const limits = publishedPlans.map(
  (name) => `${name} (${count(PLAN_LIMITS[name].perMinute)} a minute, ${count(PLAN_LIMITS[name].perDay)} a day)`,
);
const plan = { ...oneOf(PLANS), allowed: `${limits.join(', ')} or enterprise (--per-minute, --per-day)` };
const requests = integer(1, MAX_REQUESTS_PER_WINDOW);

/** Fit to be printed in a table: no control characters, no line breaks. */
const keyName = text('1 to 100 printable characters', /^[^\p{C}\p{Zl}\p{Zp}]{1,100}$/u);

const OPTIONS = {
  host: option(
    text('a host name or an IP address', /^(?:[\w][\w.-]{0,252}|[0-9A-Fa-f:.]{2,45}(?:%\w{1,15})?)$/),
    'HOST',
    'address to listen on',
    '127.0.0.1',
  ),
  port: option(integer(0, 65_535), 'N', 'port to listen on, 0 for a free one', '8080'),
  data: option(path, 'DIR', 'directory of the store', 'data'),
  store: {
    ...optional(text('a URL', /^\w[\w+.-]*:\/\/\S+$/), 'URL', 'store there, in place of --data'),
    isSecret: true,
  },
  seed: optional(path, 'FILE', 'fill an empty store from this JSON file, or with the built-in example (demo)'),
  firstKey: optional(oneOf(publishedPlans), 'PLAN', 'make and print a key if there is no active one'),
  environment: option(oneOf(ENVIRONMENTS), 'NAME', 'production accepts ps_live_…, staging ps_test_…', 'production'),
  keyEnvironment: optional(
    oneOf(ENVIRONMENTS),
    'NAME',
    'where it is accepted',
    'that of the running server; production where none runs and with --store',
  ),
  categories: option(oneOf(['open', 'known']), 'RULE', 'open takes any categoryId, known only known ones', 'open'),
  corsOrigin: optional(origin, 'ORIGIN', 'let web pages of this origin call the service'),
  trustProxy: option(integer(0, 10), 'N', 'proxies in front that set X-Forwarded-For', '0'),
  keepAlive: option(
    integer(1, 3_600),
    'SECONDS',
    'how long a connection may stay idle; make it longer than that of a proxy in front',
    '5',
  ),
  banAfter: optional(
    integer(0, 1_000_000),
    'N',
    'refusals in a minute that ban a key, 0 for never',
    '5 times its limit a minute',
  ),
  maxStoreMb: optional(
    integer(1, 1_000_000),
    'MB',
    'the most that the compacted store may take',
    'a quarter of the heap, 384 at most',
  ),
  accessLog: flag('log a line for every request'),
  metrics: optional(hostPort, 'HOST:PORT', 'serve metrics for Prometheus there, at /metrics'),
  baseUrl: optional(baseUrl, 'URL', 'production address in the OpenAPI document'),
  stagingBaseUrl: optional(baseUrl, 'URL', 'staging address in the OpenAPI document'),
  id: required(text('the id of a key, such as k1', /^k[1-9]\d{0,14}$/), 'ID', 'the key, as keys list names it'),
  plan: required(plan, 'PLAN', 'its limits'),
  name: option(keyName, 'TEXT', 'whose key it is', 'unnamed'),
  perMinute: optional(requests, 'N', 'requests a minute (enterprise only)'),
  perDay: optional(requests, 'N', 'requests a day (enterprise only)'),
  grace: option(duration(30), 'TIME', 'how long the old secret still works, 0s for not at all', '24h'),
  file: required(path, 'FILE', 'the file; - is standard input or output'),
  status: optional(oneOf(PET_STATUSES), 'STATUS', 'only animals with this status'),
  skipBad: flag('import the good lines even if others are bad'),
  json: flag('print JSON, for programs'),
};
type Table = typeof OPTIONS;

/** The named rows of the table. */
export function pick<K extends keyof Table>(...names: K[]): Pick<Table, K> {
  return Object.fromEntries(names.map((name) => [name, OPTIONS[name]])) as Pick<Table, K>;
}

/** Where the store is, for every command that needs it. With `store`, `data` means nothing. */
export type Location = Pick<Values<Table>, 'data' | 'store'>;
export const STORE = pick('data', 'store');

export const SERVE = pick(
  ...(['host', 'port', 'data', 'store', 'seed', 'firstKey', 'environment', 'categories', 'corsOrigin'] as const),
  ...(['trustProxy', 'keepAlive', 'banAfter', 'maxStoreMb', 'accessLog', 'metrics'] as const),
  ...(['baseUrl', 'stagingBaseUrl'] as const),
);
export type ServeSettings = Values<typeof SERVE>;

/** The store as messages name it: nothing of `--store`, since any part of it may belong to a password. */
export const storeName = ({ data, store }: Location): string => (store === undefined ? data : 'the database');
