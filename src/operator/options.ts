/** Options: their kinds, how a text becomes a value, and the options that `serve` or several commands take. */
import * as v from 'valibot';
import { PLAN_LIMITS } from '../access/plans.ts';
import { DAY_MS, durationMs } from '../clock.ts';
import { DEFAULT_KEEP_ALIVE_SECONDS } from '../http/server.ts';
import { shellWord } from '../quoting.ts';
import { ENVIRONMENTS } from '../store/model.ts';

const MAX_BAN_AFTER_STRIKES = 1_000_000;
const MAX_TRUST_PROXY_HOPS = 10;
const MAX_STORE_MEGABYTES = 1_000_000;
const MAX_KEEP_ALIVE_SECONDS = 3_600;

/** How a text becomes a value; `allowed` names the texts that do, in words. */
interface Kind<T> {
  allowed: string;
  schema: v.GenericSchema<string, T>;
}

export interface Option<T> extends Kind<T> {
  /** `placed`: an argument with a place of its own (`keys revoke ID`). `switch`: its name alone turns it on. */
  is: 'defaulted' | 'optional' | 'needed' | 'placed' | 'switch';
  /** The placeholder of the value in `--help`. */
  shown: string;
  help: string;
  /** The default: a text that could be given; for an optional one, words for `--help`. */
  fallback?: string;
  /** No message repeats its value. */
  isSecret?: boolean;
}

export type Options = Record<string, Option<unknown>>;
export type Values<O> = { [K in keyof O]: O[K] extends Option<infer T> ? T : never };

const as =
  <I extends Option<unknown>['is']>(is: I) =>
  <T>(kind: Kind<T>, shown: string, help: string, fallback?: string): Option<T> => {
    return { ...kind, is, shown, help, fallback };
  };

export const option: <T>(kind: Kind<T>, shown: string, help: string, fallback: string) => Option<T> = as('defaulted');
export const optional: <T>(kind: Kind<T>, shown: string, help: string, fallback?: string) => Option<T | undefined> =
  as('optional');
export const needed = as('needed');
export const placed = as('placed');
export const flag = (help: string): Option<boolean> => as('switch')(yesOrNo, '', help, 'false');

function kind<T>(allowed: string, pattern: RegExp, to: (text: string) => T, fits?: (value: T) => boolean): Kind<T> {
  return { allowed, schema: v.pipe(v.string(), v.regex(pattern), v.transform(to), v.check(fits ?? (() => true))) };
}

export const text = (allowed: string, pattern: RegExp) => kind(allowed, pattern, String);
export const integer = (min: number, max: number) =>
  kind(`a whole number, ${min} to ${max}`, /^\d{1,15}$/, Number, (number) => number >= min && number <= max);

export function oneOf<const T extends string>(values: readonly T[]): Kind<T> {
  const allowed = values.join(', ').replace(/, ([^,]+)$/, ' or $1');
  return kind(allowed, new RegExp(`^(${values.join('|')})$`), (text) => text as T);
}

const yesOrNo = kind('true or false', /^(true|false|1|0)$/, (text) => text === 'true' || text === '1');
/** Not the address of a database, which belongs to `--store`: its password would become part of a file's name. */
export const path = text('a path', /^(?!postgres(?:ql)?:\/\/)[^\0]{1,4096}$/s);
const host = text('a host name or an IP address', /^(?:[\w][\w.-]{0,252}|[0-9A-Fa-f:.]{2,45}(?:%\w{1,15})?)$/);
const hostPort = kind(
  'HOST:PORT, such as 127.0.0.1:9100 or [::1]:9100',
  /^(?:\[[0-9A-Fa-f:.]+\]|[\w.-]+):\d{1,5}$/,
  (text) => {
    const cut = text.lastIndexOf(':');
    return { host: text.slice(0, cut).replace(/[[\]]/g, ''), port: Number(text.slice(cut + 1)) };
  },
  ({ port }) => port <= 65_535,
);

/** Stricter than URLs, which allow hosts such as `*`. */
const WEB = 'https?://(?:[a-z0-9._-]+|\\[[0-9a-f:.]+\\])(?::\\d+)?';
const origin = kind(
  'an origin such as https://shop.example, or *',
  new RegExp(`^(?:\\*|${WEB})$`),
  String,
  (text) => text === '*' || (URL.canParse(text) && new URL(text).origin === text),
);
const baseUrl = kind(
  'an http or https address that ends in /v1, such as https://api.example/v1',
  new RegExp(`^${WEB}(?:/[^?#]*)?/v1$`),
  String,
  (text) => URL.canParse(text) && new URL(text).href === text,
);

export const duration = (maxDays: number) =>
  kind(`a time such as 90s, 15m, 24h or 7d, up to ${maxDays}d`, /./, durationMs, (ms) => ms <= maxDays * DAY_MS);

const storeUrl = text('postgres://USER:PASSWORD@HOST/DATABASE', /^postgres(?:ql)?:\/\/\S+$/);

/** The place of the store, an option of every command that needs it. With `store`, `data` has no meaning. */
export const place = {
  data: option(path, 'DIR', 'directory of the store', 'data'),
  store: { ...optional(storeUrl, 'URL', 'store in PostgreSQL, in place of --data'), isSecret: true },
};
export const json = flag('print JSON, for programs');

export type Place = Values<typeof place>;

/** The same place for another command: advice without it would reach another store. */
export function placeWords({ data, store }: Place): string {
  if (store !== undefined) return ' --store URL';
  return data === place.data.fallback ? '' : ` --data ${shellWord(data)}`;
}

/** The place as it may be logged: nothing of `--store`, since any part of it may belong to a password. */
export const shownPlace = ({ data, store }: Place): string => (store === undefined ? data : 'the database');

export const baseUrls = {
  baseUrl: optional(baseUrl, 'URL', 'production address in the OpenAPI document'),
  stagingBaseUrl: optional(baseUrl, 'URL', 'staging address in the OpenAPI document'),
};

const budget = (help: string) => ({
  maxStoreMb: optional(integer(1, MAX_STORE_MEGABYTES), 'MB', help, 'half of the heap'),
});
/** For a command that adds something: without a running server, it opens the store with the same bound. */
export const ownBudget = budget('memory for the stored data, if no server runs');

const strikes = integer(0, MAX_BAN_AFTER_STRIKES);
const PUBLISHED = Object.keys(PLAN_LIMITS) as (keyof typeof PLAN_LIMITS)[];

export const SERVE_OPTIONS = {
  host: option(host, 'HOST', 'address to listen on', '127.0.0.1'),
  port: option(integer(0, 65_535), 'N', 'port to listen on, 0 for a free one', '8080'),
  ...place,
  seed: optional(path, 'FILE', 'fill an empty store from this JSON file, or with the built-in example (demo)'),
  firstKey: optional(oneOf(PUBLISHED), 'PLAN', 'create and print a key if there is no active one'),
  environment: option(
    oneOf(ENVIRONMENTS),
    'NAME',
    'production accepts keys ps_live_…, staging ps_test_…',
    'production',
  ),
  categories: option(
    oneOf(['open', 'known']),
    'RULE',
    'open takes any categoryId, known only those of categories',
    'open',
  ),
  corsOrigin: optional(origin, 'ORIGIN', 'let web pages of this origin call the service'),
  trustProxy: option(integer(0, MAX_TRUST_PROXY_HOPS), 'N', 'proxies in front that set X-Forwarded-For', '0'),
  keepAlive: option(
    integer(1, MAX_KEEP_ALIVE_SECONDS),
    'SECONDS',
    'how long a connection may stay idle; make it longer than that of a proxy in front',
    String(DEFAULT_KEEP_ALIVE_SECONDS),
  ),
  banAfter: optional(strikes, 'N', 'refusals in a minute that ban a key, 0 for never', '5 times its limit a minute'),
  ...budget('memory for the stored data; one key can fill half of it at most'),
  lab: flag('serve /lab, to try clients with faults and time (needs --environment staging)'),
  accessLog: flag('log a line for every request'),
  metrics: optional(hostPort, 'HOST:PORT', 'serve metrics for Prometheus there, at /metrics'),
  ...baseUrls,
} satisfies Options;

export type ServeSettings = Values<typeof SERVE_OPTIONS>;
