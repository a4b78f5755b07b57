/**
 * Options: a rule of valibot says which texts one takes and what each becomes; a placeholder and a sentence are for `--help`.
 * The same rules hold for an option, for its variable, and for a parameter of a call on the socket.
 */
import { getHeapStatistics } from 'node:v8';
import * as v from 'valibot';
import { MAX_REQUESTS_PER_WINDOW, PLAN_LIMITS } from '../access/limiter.ts';
import { DAY_MS, durationMs } from '../clock.ts';
import { ENVIRONMENTS, PET_STATUSES, PLANS } from '../store/model.ts';
import { formatNumber } from '../text.ts';

export interface Option {
  /** What a text, or its absence, becomes. */
  readonly is: v.GenericSchema<string | undefined, unknown>;
  /** The placeholder of its value in `--help`; empty: a switch, which its name alone turns on. */
  readonly value: string;
  readonly help: string;
  /** What it takes, to end the sentence "give …". */
  readonly allowed: string;
  /** The same, short, for `--help`, where the sentence does not say it. */
  readonly range?: string;
  /** The text, or the words, for what counts where it is not given. */
  readonly otherwise?: string;
  readonly isRequired?: boolean;
  /** True: it is given by its position, without its name. */
  readonly isArgument?: boolean;
  /** No message repeats its value. */
  readonly isSecret?: boolean;
}

/** By name: `banAfter` is `--ban-after`, and PETSTORE_BAN_AFTER in the environment. */
export type Options = Readonly<Record<string, Option>>;
export type Values<O extends Options> = { [N in keyof O]: v.InferOutput<O[N]['is']> };

type Rule = v.GenericSchema<string, unknown>;
const rangeOf = (rule: Rule) => ({ allowed: v.getDescription(rule) ?? '', range: v.getTitle(rule) });

const required = <R extends Rule>(is: R, value: string, help: string) => {
  return { is, value, help, isRequired: true, ...rangeOf(is) };
};
const argument = <R extends Rule>(is: R, value: string, help: string) => {
  return { is, value, help, isArgument: true, ...rangeOf(is) };
};
/** `otherwise`: its default in words. */
const optional = <R extends Rule>(rule: R, value: string, help: string, otherwise?: string) => {
  return { is: v.optional(rule), value, help, otherwise, ...rangeOf(rule) };
};
/** `otherwise`: the text that counts where none is given. */
const withDefault = <R extends Rule>(rule: R, otherwise: string, value: string, help: string) => {
  return { is: v.optional(rule, otherwise), value, help, otherwise, ...rangeOf(rule) };
};

const yesOrNo = v.pipe(
  v.picklist(['true', 'false', '1', '0']),
  v.transform((text) => text === 'true' || text === '1'),
);
/** A switch: true by its name alone; `true`, `false`, `1` or `0` as a variable. */
export const flag = (help: string) => {
  return { is: v.optional(yesOrNo, 'false'), value: '', help, allowed: 'true or false' };
};

const text = (allowed: string, pattern: RegExp, fits: (text: string) => boolean = () => true) =>
  v.pipe(v.string(), v.regex(pattern), v.check(fits), v.description(allowed));

function choice<const T extends string>(texts: readonly T[]) {
  const words = texts.join(', ').replace(/, (?=[^,]+$)/, ' or ');
  return v.pipe(v.picklist(texts), v.description(words), v.title(words));
}

const integer = (min: number, max: number, why = '') =>
  v.pipe(
    v.string(),
    v.regex(/^\d{1,15}$/),
    v.transform(Number),
    v.minValue(min),
    v.maxValue(max),
    v.description(`a whole number, ${min} to ${max}${why}`),
    v.title(`${min} to ${max}`),
  );

const duration = v.pipe(
  v.string(),
  v.transform(durationMs),
  v.check((ms) => ms <= 30 * DAY_MS),
  v.description('a time such as 90s, 15m, 24h or 7d, up to 30d'),
  v.title('90s, 15m, 24h, 7d; up to 30d'),
);

/** Not a URL, which belongs to `--store`: its password would become part of a file's name. */
const path = text('a path', /^(?!\w[\w+.-]*:\/\/)[^\0]{1,4096}$/s);

const hostPort = v.pipe(
  v.string(),
  v.regex(/^(?:\[[0-9A-Fa-f:.]+\]|[\w.-]+):\d{1,5}$/),
  v.transform((text) => ({ host: text.replace(/^\[|\]?:\d+$/g, ''), port: Number(/\d+$/.exec(text)) })),
  v.check(({ port }) => port <= 65_535),
  v.description('HOST:PORT, such as 127.0.0.1:9180 or [::1]:9180'),
);

/** A web address up to its path. It may hold no user: messages and pages repeat it. */
const WEB = 'https?://(?:[\\w.-]+|\\[[0-9A-Fa-f:.]+\\])(?::\\d+)?';

const origin = text(
  'an origin such as https://shop.example, or *',
  new RegExp(`^(?:\\*|${WEB})$`),
  (text) => text === '*' || (URL.canParse(text) && new URL(text).origin === text),
);

const baseUrl = text(
  'an http or https address that ends in /v1, such as https://api.example/v1',
  new RegExp(`^${WEB}(?:/[^?#]*)?/v1$`),
  (text) => URL.canParse(text) && new URL(text).href === text,
);

const host = text('a host name or an IP address', /^(?:[\w][\w.-]{0,252}|[0-9A-Fa-f:.]{2,45}(?:%\w{1,15})?)$/);
const url = text('a URL', /^\w[\w+.-]*:\/\/\S+$/);
/** Fit to be printed in a table: no control characters, no line breaks. */
const keyName = text('1 to 100 printable characters', /^[^\p{C}\p{Zl}\p{Zp}]{1,100}$/u);

const publishedPlans = Object.keys(PLAN_LIMITS) as (keyof typeof PLAN_LIMITS)[];
const limits = publishedPlans.map((name) => {
  const { perMinute, perDay } = PLAN_LIMITS[name];
  return `${name} (${formatNumber(perMinute)} a minute, ${formatNumber(perDay)} a day)`;
});
const planWords = `${limits.join(', ')} or enterprise (--per-minute, --per-day)`;
const plan = v.pipe(v.picklist(PLANS), v.description(planWords), v.title(planWords));
const requests = integer(1, MAX_REQUESTS_PER_WINDOW);
const environment = choice(ENVIRONMENTS);

const heapMb = Math.floor(getHeapStatistics().heap_size_limit / 2 ** 20);
/** Rows take up to two bytes of heap for a byte of the compacted file; a server takes more in its life. */
const MOST_MB = Math.max(1, Math.floor(heapMb / 3));
/** 384: so many of the smallest rows, 27 bytes each, fit into a `Map`, which holds 2^24. */
const DEFAULT_MB = Math.max(1, Math.min(Math.floor(heapMb / 4), 384));
const megabytes = integer(1, MOST_MB, `: the heap of this process, ${heapMb} MB, holds no more`);

export const LISTENING = {
  host: withDefault(host, '127.0.0.1', 'HOST', 'address to listen on'),
  port: withDefault(integer(0, 65_535), '8080', 'N', 'port, 0 for a free one'),
};
export const JSON_SWITCH = { json: flag('print JSON, for programs') };
export const PLACE = {
  data: withDefault(path, 'data', 'DIR', 'directory of the store'),
  store: { ...optional(url, 'URL', 'store at a URL, in place of --data'), isSecret: true },
};
/** Of commands that add to the store. */
export const BOUND = {
  maxStoreMb: withDefault(megabytes, String(DEFAULT_MB), 'MB', 'limit of the compacted store'),
};
/** Those of a server. */
export const SERVE = {
  ...LISTENING,
  ...PLACE,
  seed: optional(path, 'FILE', 'fill an empty store from a file; demo is built in'),
  firstKey: optional(choice(publishedPlans), 'PLAN', 'make a key if none works'),
  environment: withDefault(environment, 'production', 'NAME', 'production takes ps_live_…, staging ps_test_…'),
  corsOrigin: optional(origin, 'ORIGIN', 'let web pages of this origin call, or of all: *'),
  trustProxy: withDefault(integer(0, 10), '0', 'N', 'proxies that set X-Forwarded-For'),
  keepAlive: withDefault(integer(1, 3_600), '5', 'SECONDS', 'idle time; more than a proxy has'),
  connectionsPerAddress: withDefault(integer(1, 100_000), '100', 'N', 'at a time'),
  banAfter: optional(integer(0, 1_000_000), 'N', 'refusals a minute that ban, 0: never', '5 × the limit'),
  ...BOUND,
  accessLog: flag('log a line for every request'),
  metrics: optional(hostPort, 'HOST:PORT', 'serve metrics for Prometheus there, at /metrics'),
  baseUrl: optional(baseUrl, 'URL', 'production address in the document, ends in /v1'),
  stagingBaseUrl: optional(baseUrl, 'URL', 'staging address in the document, ends in /v1'),
  check: flag('say whether a start would succeed; change nothing'),
};
export type ServeSettings = Values<typeof SERVE>;

/** Of keys. */
export const KEY_ID = { id: argument(text('the id of a key, such as k1', /^k[1-9]\d{0,14}$/), 'ID', 'of the key') };
export const LIMITS = {
  perMinute: optional(requests, 'N', 'requests a minute, of enterprise'),
  perDay: optional(requests, 'N', 'requests a day, of enterprise'),
};
export const NEW_KEY = {
  plan: required(plan, 'PLAN', 'its limits'),
  name: withDefault(keyName, 'unnamed', 'TEXT', 'whose key it is, 1 to 100 characters'),
  ...LIMITS,
  readOnly: flag('let the key read only: GET and HEAD'),
  environment: optional(environment, 'NAME', 'where it works', 'that of the server, or production'),
};
export const NEW_PLAN = { ...KEY_ID, plan: argument(plan, 'PLAN', 'the new plan'), ...LIMITS };
export const GRACE = { grace: withDefault(duration, '24h', 'TIME', 'how long older secrets work') };
/** A parameter of a call, and no option. */
export const DIGEST = { digest: required(text('the SHA-256 of a key, as hex', /^[0-9a-f]{64}$/), '', '') };

/** Of data that goes in and out. */
export const fileOption = (help: string) => ({ file: argument(path, 'FILE', help) });
export const STATUS = { status: optional(choice(PET_STATUSES), 'STATUS', 'only these') };
const count = required(integer(0, Number.MAX_SAFE_INTEGER), '', '');
/** Parameters of a call: what its body holds. */
export const INPUT = {
  digest: required(text('a name of the input, in letters and digits', /^\w{1,100}$/), '', ''),
  animals: count,
  bytes: count,
};
