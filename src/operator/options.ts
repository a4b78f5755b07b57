/** What an option is, and how the text of one becomes a value. The table of them all is `config.ts`. */
import { isIPv6 } from 'node:net';
import * as v from 'valibot';

const PATH_MAX_CHARACTERS = 4_096;

/** How a text becomes a value; `allowed` says in words which texts do. */
interface Kind<T> {
  allowed: string;
  schema: v.GenericSchema<string, T>;
}

export interface Option<T> extends Kind<T> {
  /** What stands for the value in `--help`; empty for a switch. */
  shown: string;
  help: string;
  fallback?: string;
  need: 'required' | 'optional';
  /** An argument with a place of its own (`keys revoke ID`) and so without a name or a variable. */
  placed: boolean;
}

export type Options = Record<string, Option<unknown>>;
export type Values<O> = { [K in keyof O]: O[K] extends Option<infer T> ? T : never };

export interface Spec<O extends Options> {
  name: string;
  does: string;
  more?: string;
  /** Not for people: the program calls itself so. */
  hidden?: boolean;
  options: O;
  /** What no option alone can tell: returns what is wrong. */
  check?(values: Values<O>): string | undefined;
}

export const spec = <O extends Options>(of: Spec<O>): Spec<O> => of;

export function option<T>(kind: Kind<T>, shown: string, help: string, fallback: string): Option<T> {
  return { ...kind, shown, help, fallback, need: 'optional', placed: false };
}

export function optional<T>(kind: Kind<T>, shown: string, help: string): Option<T | undefined> {
  return { ...kind, shown, help, need: 'optional', placed: false };
}

export function required<T>(kind: Kind<T>, shown: string, help: string): Option<T> {
  return { ...kind, shown, help, need: 'required', placed: false };
}

export const place = <T>(kind: Kind<T>, shown: string, help: string): Option<T> => ({
  ...required(kind, shown, help),
  placed: true,
});

export const flag = (help: string): Option<boolean> => option(toggle, '', help, 'false');

const toggle: Kind<boolean> = {
  allowed: 'true or false',
  schema: v.pipe(
    v.picklist(['true', 'false', '1', '0']),
    v.transform((text) => text === 'true' || text === '1'),
  ),
};

export const oneOf = <const T extends readonly string[]>(values: T): Kind<T[number]> => ({
  allowed: values.join(', ').replace(/, ([^,]+)$/, ' or $1'),
  schema: v.picklist(values),
});

export function integer(min: number, max: number): Kind<number> {
  const schema = v.pipe(v.string(), v.regex(/^\d{1,15}$/), v.transform(Number), v.minValue(min), v.maxValue(max));
  return { allowed: `a whole number from ${min} to ${max}`, schema };
}

export function text(allowed: string, pattern: RegExp): Kind<string> {
  return { allowed, schema: v.pipe(v.string(), v.regex(pattern)) };
}

export const path = text('a path', new RegExp(`^[^\\0]{1,${PATH_MAX_CHARACTERS}}$`, 's'));
export const host = text(
  'a host name or an IP address',
  /^(?:[A-Za-z0-9][A-Za-z0-9.-]{0,252}|[0-9A-Fa-f:.]{2,45}(?:%\w{1,15})?)$/,
);

export interface HostPort {
  host: string;
  port: number;
}

export const hostPort: Kind<HostPort> = {
  allowed: 'HOST:PORT, such as 127.0.0.1:9100 or [::1]:9100',
  schema: v.pipe(
    v.string(),
    v.transform((text) => /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]+)):(\d{1,5})$/.exec(text)),
    v.check((found) => found !== null && (found[1] === undefined || isIPv6(found[1])) && Number(found[3]) <= 65_535),
    v.transform((found) => ({ host: found![1] ?? found![2], port: Number(found![3]) })),
  ),
};

function webAddress(allowed: string, fits: (url: URL, text: string) => boolean): Kind<string> {
  const good = (text: string) => {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    return url !== undefined && /^https?:$/.test(url.protocol) && fits(url, text);
  };
  return { allowed, schema: v.pipe(v.string(), v.check(good)) };
}

const oneOrigin = webAddress('', (url, text) => url.origin === text);

export const origin: Kind<string> = {
  allowed: 'an origin, such as https://shop.example, or *',
  schema: v.union([v.literal('*'), oneOrigin.schema]) as v.GenericSchema<string, string>,
};

export const baseUrl = webAddress(
  'an http or https address that ends in /v1, such as https://api.example/v1',
  (url) => url.pathname.endsWith('/v1') && url.search === '' && url.hash === '' && url.username === '',
);

const UNITS_MS = new Map([
  ['s', 1_000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
]);

export function duration(maxMs: number): Kind<number> {
  const schema = v.pipe(
    v.string(),
    v.regex(/^\d{1,9}[smhd]$/),
    v.transform((text) => Number(text.slice(0, -1)) * UNITS_MS.get(text.slice(-1))!),
    v.maxValue(maxMs),
  );
  return { allowed: `a time such as 90s, 15m, 24h or 7d, at most ${maxMs / 86_400_000}d`, schema };
}
