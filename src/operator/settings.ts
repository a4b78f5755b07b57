/** What the operator may say to `serve`, and the options that several commands take: one table for all there is. */
import { ENVIRONMENTS } from '../store/model.ts';
import * as is from './options.ts';
import { flag, type Options, option, optional, type Values } from './options.ts';

const MAX_BAN_AFTER_STRIKES = 1_000_000;
const MAX_TRUST_PROXY_HOPS = 10;
const DEFAULT_DATA = 'data';

const storeUrl = is.text('postgres://USER:PASSWORD@HOST/DATABASE', /^postgres(?:ql)?:\/\/\S+$/);

/** Where the store is: of every command that needs it. */
export const place = {
  data: optional(is.path, 'DIR', 'directory of the store', DEFAULT_DATA),
  store: optional(storeUrl, 'URL', 'store in PostgreSQL, in place of --data'),
};
export const json = flag('print JSON, for programs');

export type Place = { data: string; store?: undefined } | { data?: undefined; store: string };

export function placeOf({ data = DEFAULT_DATA, store }: { data?: string; store?: string }): Place {
  return store === undefined ? { data } : { store };
}

/** As it may be logged: without user and password. */
export const shownPlace = ({ data, store }: Place): string => data ?? store.replace(/\/\/[^/]*@/, '//');

export const baseUrls = {
  baseUrl: optional(is.baseUrl, 'URL', 'production address in the OpenAPI document'),
  stagingBaseUrl: optional(is.baseUrl, 'URL', 'staging address in the OpenAPI document'),
};

const strikes = is.integer(0, MAX_BAN_AFTER_STRIKES);

export const SERVE_OPTIONS = {
  host: option(is.host, 'HOST', 'address to listen on', '127.0.0.1'),
  port: option(is.integer(0, 65_535), 'N', 'port to listen on, 0 for a free one', '8080'),
  ...place,
  seed: optional(is.path, 'FILE', 'fill the store from this JSON file if it is empty'),
  firstKey: optional(is.oneOf(['free', 'pro', 'business']), 'PLAN', 'create and print a key if there is no active one'),
  environment: option(is.oneOf(ENVIRONMENTS), 'NAME', 'accept keys ps_live_… or keys ps_test_…', 'production'),
  categories: option(is.oneOf(['open', 'known']), 'RULE', 'take any categoryId, or only that of a category', 'open'),
  corsOrigin: optional(is.origin, 'ORIGIN', 'let web pages of this origin call the service'),
  trustProxy: option(is.integer(0, MAX_TRUST_PROXY_HOPS), 'N', 'proxies in front that set X-Forwarded-For', '0'),
  banAfter: optional(strikes, 'N', 'ban a key after so many refusals in a minute, 0 for never', '5 times its limit'),
  lab: flag('serve /lab, to try clients with faults and time (needs --environment staging)'),
  accessLog: flag('log a line for every request'),
  metrics: optional(is.hostPort, 'HOST:PORT', 'serve metrics for Prometheus there, at /metrics'),
  ...baseUrls,
} satisfies Options;

export type ServeSettings = Values<typeof SERVE_OPTIONS>;
