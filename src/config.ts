/**
 * What the operator may say to `serve`, in one table, from which come the flags, the environment variables (`--ban-after`
 * is PETSTORE_BAN_AFTER), the defaults, the checks and `--help`; and the options that several commands take.
 */
import { LEVELS } from './operator/logging.ts';
import {
  baseUrl,
  flag,
  host,
  hostPort,
  integer,
  oneOf,
  option,
  optional,
  origin,
  path,
  type Values,
} from './operator/options.ts';
import { ENVIRONMENTS } from './store/model.ts';

const BAN_AFTER_MAX_STRIKES = 1_000_000;
const TRUST_PROXY_MAX_HOPS = 10;

export const data = option(path, 'DIR', 'the directory of the store', 'data');
export const json = flag('print JSON, for programs');
export const baseUrls = {
  baseUrl: optional(baseUrl, 'URL', 'production address in the OpenAPI document'),
  stagingBaseUrl: optional(baseUrl, 'URL', 'staging address in the OpenAPI document'),
};

const firstKeyPlan = oneOf(['free', 'pro', 'business']);
const environment = oneOf(ENVIRONMENTS);
const rule = oneOf(['open', 'known']);
const strikes = integer(0, BAN_AFTER_MAX_STRIKES);
const bansAfter = 'refusals in a minute that ban a key; 0: never; if not given, 5 times the limit a minute';

export const SERVE = {
  name: 'serve',
  does: 'run the service until SIGTERM or SIGINT',
  options: {
    host: option(host, 'HOST', 'address to listen on', '127.0.0.1'),
    port: option(integer(0, 65_535), 'N', 'port to listen on; 0 picks a free one', '8080'),
    data,
    seed: optional(path, 'FILE', 'fill the store from this file if it is empty'),
    firstKey: optional(firstKeyPlan, 'PLAN', `make and print a key if none lets anybody in: ${firstKeyPlan.allowed}`),
    environment: option(environment, 'NAME', 'production lets in keys ps_live_…, staging keys ps_test_…', 'production'),
    categories: option(rule, 'RULE', 'open takes any categoryId, known only that of a category', 'open'),
    corsOrigin: optional(origin, 'ORIGIN', 'let web pages of this origin call the service'),
    trustProxy: option(integer(0, TRUST_PROXY_MAX_HOPS), 'N', 'proxies in front that set X-Forwarded-For', '0'),
    banAfter: optional(strikes, 'N', bansAfter),
    accessLog: flag('log a line for every request'),
    logLevel: option(oneOf(LEVELS), 'LEVEL', 'log info, warn or error lines, and above', 'info'),
    metrics: optional(hostPort, 'HOST:PORT', 'serve metrics for Prometheus there, at /metrics'),
    ...baseUrls,
  },
};

export type ServeSettings = Values<typeof SERVE.options>;
