/**
 * What the operator may say: every command's options in one table, from which come the flags, the environment variables
 * (`--ban-after` is PETSTORE_BAN_AFTER), the defaults, the checks and `--help`.
 */
import { MAX_REQUESTS_PER_WINDOW } from './access/plans.ts';
import { LEVELS } from './operator/logging.ts';
import {
  baseUrl,
  duration,
  flag,
  host,
  hostPort,
  integer,
  oneOf,
  option,
  optional,
  origin,
  path,
  place,
  required,
  spec,
  text,
  type Values,
} from './operator/options.ts';
import { ENVIRONMENTS, PET_STATUSES, PLANS } from './store/model.ts';

const KEY_NAME_MAX_CHARACTERS = 100;

export const GRACE_MAX_MS = 30 * 86_400_000;
const BAN_AFTER_MAX_STRIKES = 1_000_000;
const TRUST_PROXY_MAX_HOPS = 10;

const data = option(path, 'DIR', 'the directory of the store', 'data');
const json = flag('print JSON, for programs');
const keyId = place(
  text('the id of a key, such as k1', /^k[1-9]\d{0,14}$/),
  'ID',
  'the key, as petstore keys list names it',
);
/** Fit to be printed in a table: no control characters, no line breaks. */
export const keyName = text(
  `1 to ${KEY_NAME_MAX_CHARACTERS} printable characters`,
  new RegExp(`^[^\\p{C}\\p{Zl}\\p{Zp}]{1,${KEY_NAME_MAX_CHARACTERS}}$`, 'u'),
);
const file = (help: string) => place(path, 'FILE', help);
const baseUrls = {
  baseUrl: optional(baseUrl, 'URL', 'production address in the OpenAPI document'),
  stagingBaseUrl: optional(baseUrl, 'URL', 'staging address in the OpenAPI document'),
};
const customLimits = {
  perMinute: optional(integer(1, MAX_REQUESTS_PER_WINDOW), 'N', 'requests a minute (enterprise only)'),
  perDay: optional(integer(1, MAX_REQUESTS_PER_WINDOW), 'N', 'requests a day (enterprise only)'),
};

function limitsFitPlan(values: { plan: string; perMinute?: number; perDay?: number }): string | undefined {
  const given = Number(values.perMinute !== undefined) + Number(values.perDay !== undefined);
  if (values.plan === 'enterprise' && given < 2) return 'the enterprise plan needs --per-minute N and --per-day N';
  if (values.plan !== 'enterprise' && given > 0) return 'only the enterprise plan takes --per-minute and --per-day';
  return undefined;
}

export const SERVE = spec({
  name: 'serve',
  does: 'run the service until SIGTERM or SIGINT',
  options: {
    host: option(host, 'HOST', 'address to listen on', '127.0.0.1'),
    port: option(integer(0, 65_535), 'N', 'port to listen on; 0 picks a free one', '8080'),
    data,
    seed: optional(path, 'FILE', 'fill the store from this file if it is empty'),
    firstKey: optional(
      oneOf(['free', 'pro', 'business']),
      'PLAN',
      'make and print a key if there is none: free, pro or business',
    ),
    environment: option(
      oneOf(ENVIRONMENTS),
      'NAME',
      'production lets in keys ps_live_…, staging keys ps_test_…',
      'production',
    ),
    categories: option(
      oneOf(['open', 'known']),
      'RULE',
      'open takes any categoryId, known only that of a category',
      'open',
    ),
    corsOrigin: optional(origin, 'ORIGIN', 'let web pages of this origin call the service'),
    trustProxy: option(integer(0, TRUST_PROXY_MAX_HOPS), 'N', 'proxies in front that set X-Forwarded-For', '0'),
    banAfter: optional(
      integer(0, BAN_AFTER_MAX_STRIKES),
      'N',
      'refusals in a minute that ban a key; 0: never; if not given, 5 times the limit a minute',
    ),
    accessLog: flag('log a line for every request'),
    logLevel: option(oneOf(LEVELS), 'LEVEL', 'log info, warn or error lines, and above', 'info'),
    metrics: optional(hostPort, 'HOST:PORT', 'serve metrics for Prometheus there, at /metrics'),
    ...baseUrls,
  },
});

export type ServeSettings = Values<typeof SERVE.options>;

export const KEYS_CREATE = spec({
  name: 'keys create',
  does: 'make an API key and print it, once',
  more: 'The key stands alone on the last line. Only its digest is kept: it cannot be shown again.',
  options: {
    plan: required(oneOf(PLANS), 'PLAN', 'free: 60 a minute, 1,000 a day; pro: 300, 10,000; business: 1,000, 100,000'),
    name: option(keyName, 'TEXT', 'whose key it is', 'unnamed'),
    ...customLimits,
    environment: optional(
      oneOf(ENVIRONMENTS),
      'NAME',
      'if not given, that of the running server, or production if none runs',
    ),
    data,
    json,
  },
  check: limitsFitPlan,
});

export const KEYS_LIST = spec({ name: 'keys list', does: 'list all keys', options: { data, json } });

export const KEYS_SHOW = spec({
  name: 'keys show',
  does: 'show what a key has left, its strikes and its ban, spending nothing',
  options: { id: keyId, data, json },
});

export const KEYS_REVOKE = spec({
  name: 'keys revoke',
  does: 'end a key at once, for good',
  options: { id: keyId, data, json },
});

export const KEYS_ROTATE = spec({
  name: 'keys rotate',
  does: 'give a key a new secret and print it, once',
  more: 'The id, the plan and what is used stay. The old secret works until its grace ends; older ones end now.',
  options: {
    id: keyId,
    grace: option(duration(GRACE_MAX_MS), 'TIME', 'how long the old secret still works; 0s: not at all', '24h'),
    data,
    json,
  },
});

export const KEYS_LIFT = spec({
  name: 'keys lift',
  does: 'end the ban of a key and forget its strikes',
  options: { id: keyId, data, json },
});

export const KEYS_PLAN = spec({
  name: 'keys plan',
  does: 'put a key on another plan; what it has used stays used',
  options: { id: keyId, plan: place(oneOf(PLANS), 'PLAN', 'the new plan'), ...customLimits, data, json },
  check: limitsFitPlan,
});

export const VERIFY = spec({
  name: 'verify',
  does: 'read and check everything in the store; print counts and a digest',
  more: 'Changes nothing. Two stores with the same digest hold the same.',
  options: { data, json },
});

export const REPAIR = spec({
  name: 'repair',
  does: 'cut a damaged store at the damage, keeping the damaged file beside',
  more: 'For a store that the service refused to open. Make a copy of the directory first.',
  options: { data, json },
});

export const COMPACT = spec({
  name: 'compact',
  does: 'write the store anew, without what was overtaken',
  options: { data, json },
});

export const BACKUP = spec({
  name: 'backup',
  does: 'copy the store into one file, also while the service runs',
  options: { file: file('the file to write; it must not exist'), data, json },
});

export const RESTORE = spec({
  name: 'restore',
  does: 'fill an empty data directory from a backup, and prove it',
  options: { file: file('a file that petstore backup wrote'), data, json },
});

export const EXPORT = spec({
  name: 'export',
  does: 'print all animals as JSON lines',
  options: {
    status: optional(oneOf(PET_STATUSES), 'STATUS', 'only animals that are available, pending or sold'),
    data,
  },
});

export const IMPORT = spec({
  name: 'import',
  does: 'add animals from a file of JSON lines: all of them or none',
  more: `A line is {"name","categoryId","status"?}. An "id", as export writes it, is let pass; a new one is given. \
Bad lines are told on stderr, by number and reason; with --skip-bad and --json, in the JSON.`,
  options: {
    file: file('the file to read'),
    skipBad: flag('add the good lines even if others are bad'),
    data,
    json,
  },
});

export const OPENAPI = spec({ name: 'openapi', does: 'print the OpenAPI document', options: { ...baseUrls } });

export const VERSION = spec({ name: 'version', does: 'print version, commit and runtime', options: { json } });

export const COMPACT_CHILD = spec({
  name: 'compact-child',
  does: 'the part of a compaction that is done in a process of its own',
  hidden: true,
  options: {
    dir: place(path, 'DIR', 'the directory of the store'),
    generation: place(integer(1, Number.MAX_SAFE_INTEGER), 'N', 'the generation to write'),
  },
});
