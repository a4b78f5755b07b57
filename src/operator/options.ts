/**
 * Options: valibot says which texts one takes, and what each becomes; the rest is for `--help`. The same rules hold for an
 * option, for its variable, and for a parameter of a procedure of the running server.
 */
import * as v from 'valibot';
import { MAX_REQUESTS_PER_WINDOW, PLAN_LIMITS } from '../access/limiter.ts';
import { DAY_MS, durationMs } from '../clock.ts';
import { ENVIRONMENTS, PET_STATUSES, PLANS } from '../store/model.ts';
import { formatNumber } from '../text.ts';

/** What a text, or its absence, becomes. Its description ends the sentence "give …". */
type Rule = v.GenericSchema<string | undefined, unknown>;

export interface Option {
  readonly is: Rule;
  /** The placeholder of its value in `--help`; empty: a switch, which its name alone turns on. */
  readonly value: string;
  readonly help: string;
  /** Its default in words, where that is no text that could be given. */
  readonly otherwise?: string;
  /** True: it is given by its position, without its name. */
  readonly isArgument?: boolean;
  /** No message repeats its value. */
  readonly isSecret?: boolean;
}

/** By name: `banAfter` is `--ban-after`, and PETSTORE_BAN_AFTER in the environment. */
export type Options = Readonly<Record<string, Option>>;
export type Values<O extends Options> = { [N in keyof O]: v.InferOutput<O[N]['is']> };
/** By the names of options: what was given, as it was given. */
export type Texts = Readonly<Partial<Record<string, string>>>;

/** Keeps the type of the rule, from which `Values` takes that of the value. */
export const option = <R extends Rule>(is: R, value: string, help: string, otherwise?: string) => {
  return { is, value, help, otherwise };
};
export const argument = <R extends Rule>(is: R, value: string, help: string) => {
  return { is, value, help, isArgument: true };
};

/** A switch: true by its name alone; `true`, `false`, `1` or `0` as a variable. */
export const flag = (help: string) => option(yesOrNo, '', help);

const yesOrNo = v.optional(
  v.pipe(
    v.picklist(['true', 'false', '1', '0']),
    v.transform((text) => text === 'true' || text === '1'),
    v.description('true or false'),
  ),
  'false',
);

const text = (allowed: string, pattern: RegExp, fits: (text: string) => boolean = () => true) =>
  v.pipe(v.string(), v.regex(pattern), v.check(fits), v.description(allowed));

export function choice<const T extends string>(texts: readonly T[]) {
  return v.pipe(v.picklist(texts), v.description(texts.join(', ').replace(/, (?=[^,]+$)/, ' or ')));
}

const integer = (min: number, max: number) =>
  v.pipe(
    v.string(),
    v.regex(/^\d{1,15}$/),
    v.transform(Number),
    v.minValue(min),
    v.maxValue(max),
    v.description(`a whole number, ${min} to ${max}`),
  );

const duration = v.pipe(
  v.string(),
  v.transform(durationMs),
  v.check((ms) => ms <= 30 * DAY_MS),
  v.description('a time such as 90s, 15m, 24h or 7d, up to 30d'),
);

/** Not a URL, which belongs to `--store`: its password would become part of a file's name. */
const path = text('a path', /^(?!\w[\w+.-]*:\/\/)[^\0]{1,4096}$/s);

const hostPort = v.pipe(
  text('HOST:PORT, such as 127.0.0.1:9180 or [::1]:9180', /^(?:\[[0-9A-Fa-f:.]+\]|[\w.-]+):\d{1,5}$/),
  v.transform((text) => {
    const cut = text.lastIndexOf(':');
    return { host: text.slice(0, cut).replace(/[[\]]/g, ''), port: Number(text.slice(cut + 1)) };
  }),
  v.check(({ port }) => port <= 65_535),
);

/** Stricter than URLs, which allow hosts such as `*`. */
const WEB = 'https?://(?:[a-z0-9._-]+|\\[[0-9a-f:.]+\\])(?::\\d+)?';

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
const publishedPlans = Object.keys(PLAN_LIMITS) as (keyof typeof PLAN_LIMITS)[];
const limits = publishedPlans.map(
  (name) =>
    `${name} (${formatNumber(PLAN_LIMITS[name].perMinute)} a minute, ${formatNumber(PLAN_LIMITS[name].perDay)} a day)`,
);
const plan = v.pipe(v.picklist(PLANS), v.description(`${limits.join(', ')} or enterprise (--per-minute, --per-day)`));
const requests = integer(1, MAX_REQUESTS_PER_WINDOW);

/** Fit to be printed in a table: no control characters, no line breaks. */
const keyName = text('1 to 100 printable characters', /^[^\p{C}\p{Zl}\p{Zp}]{1,100}$/u);

const environment = choice(ENVIRONMENTS);
const seconds = integer(1, 3_600);
const refusals = integer(0, 1_000_000);
const connections = integer(1, 10_000);
const megabytes = integer(1, 1_000_000);
const url = text('a URL', /^\w[\w+.-]*:\/\/\S+$/);

/** Those of a server. */
export const SERVE = {
  host: option(v.optional(host, '127.0.0.1'), 'HOST', 'address to listen on'),
  port: option(v.optional(integer(0, 65_535), '8080'), 'N', 'port to listen on, 0 for a free one'),
  data: option(v.optional(path, 'data'), 'DIR', 'directory of the store'),
  store: { ...option(v.optional(url), 'URL', 'store at a URL, in place of --data'), isSecret: true },
  seed: option(v.optional(path), 'FILE', 'fill an empty store from this JSON file; demo is a built-in example'),
  firstKey: option(v.optional(choice(publishedPlans)), 'PLAN', 'make and print a key if there is no active one'),
  environment: option(v.optional(environment, 'production'), 'NAME', 'production takes ps_live_…, staging ps_test_…'),
  corsOrigin: option(v.optional(origin), 'ORIGIN', 'let web pages of this origin call the service'),
  trustProxy: option(v.optional(integer(0, 10), '0'), 'N', 'proxies in front that set X-Forwarded-For'),
  keepAlive: option(v.optional(seconds, '5'), 'SECONDS', 'idle time of a connection; more than a proxy in front has'),
  connectionsPerAddress: option(
    v.optional(connections, '100'),
    'N',
    'connections of one address; not behind --trust-proxy',
  ),
  banAfter: option(v.optional(refusals), 'N', 'refusals a minute that ban a key, 0 for never', '5 times its limit'),
  maxStoreMb: option(v.optional(megabytes), 'MB', 'limit of the compacted store', 'a quarter of the heap, up to 384'),
  accessLog: flag('log a line for every request'),
  metrics: option(v.optional(hostPort), 'HOST:PORT', 'serve metrics for Prometheus there, at /metrics'),
  baseUrl: option(v.optional(baseUrl), 'URL', 'production address in the OpenAPI document'),
  stagingBaseUrl: option(v.optional(baseUrl), 'URL', 'staging address in the OpenAPI document'),
};
export type ServeSettings = Values<typeof SERVE>;

const OPTIONS = {
  ...SERVE,
  keyEnvironment: option(v.optional(environment), 'NAME', 'where it is accepted', 'that of the server, or production'),
  id: argument(text('the id of a key, such as k1', /^k[1-9]\d{0,14}$/), 'ID', 'the key, as keys list names it'),
  plan: option(plan, 'PLAN', 'its limits'),
  name: option(v.optional(keyName, 'unnamed'), 'TEXT', 'whose key it is'),
  perMinute: option(v.optional(requests), 'N', 'requests a minute (enterprise only)'),
  perDay: option(v.optional(requests), 'N', 'requests a day (enterprise only)'),
  readOnly: flag('let the key read only: GET and HEAD'),
  grace: option(v.optional(duration, '24h'), 'TIME', 'how long the old secret still works, 0s for not at all'),
  file: argument(path, 'FILE', 'the file; - is standard input or output'),
  status: option(v.optional(choice(PET_STATUSES)), 'STATUS', 'only animals with this status'),
  skipBad: flag('import the good lines even if others are bad'),
  json: flag('print JSON, for programs'),
};
type Table = typeof OPTIONS;

/** The named rows of the table. */
export function pick<N extends keyof Table>(...names: N[]): Pick<Table, N> {
  return Object.fromEntries(names.map((name) => [name, OPTIONS[name]])) as Pick<Table, N>;
}

/** Parameters that only procedures have, and not command lines. */
export const PARAMETERS = {
  digest: option(text('the SHA-256 of a key, as hex', /^[0-9a-f]{64}$/), 'HEX', 'the digest of a key'),
  batch: option(v.optional(text('letters, digits and :', /^[\w:]{1,100}$/)), 'NAME', 'added once under this name'),
  lines: option(v.pipe(v.string(), v.description('JSON lines')), 'LINES', 'animals, one a line'),
};

/** Where the store is. With `store`, `data` means nothing. */
export type Location = Pick<Values<Table>, 'data' | 'store'>;

/** The store as messages name it: nothing of `--store`, since any part of it may belong to a password. */
export const storeName = ({ data, store }: Location): string => (store === undefined ? data : 'the database');
