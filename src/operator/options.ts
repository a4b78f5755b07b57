/** What a command's options are, and how the text of one becomes a value. */
import { isIPv6 } from 'node:net';
import * as v from 'valibot';

const PATH_MAX_CHARACTERS = 4_096;

/** How a text becomes a value; `allowed` says in words which texts do. */
interface Kind<T> {
  allowed: string;
  schema: v.GenericSchema<string, T>;
}

export interface Option<T> extends Kind<T> {
  /** What stands for the value in `--help`. */
  shown: string;
  help: string;
  fallback?: string;
  /**
   * `placed`: an argument with a place of its own (`keys revoke ID`) and so without a name or a variable.
   * `switch`: its name alone turns it on.
   */
  is: 'optional' | 'needed' | 'placed' | 'switch';
}

export type Options = Record<string, Option<unknown>>;
export type Values<O> = { [K in keyof O]: O[K] extends Option<infer T> ? T : never };

export interface Spec<O extends Options> {
  name: string;
  does: string;
  more?: string;
  /** What to say where the result is printed once and nobody has read it. */
  unprinted?: string;
  /** Not for people: the program calls itself so. */
  hidden?: boolean;
  options: O;
  /** What no option alone can tell: returns what is wrong. `nameOf`: an option as it was given. */
  check?(values: Values<O>, nameOf: (key: string) => string): string | undefined;
}

export function option<T>(kind: Kind<T>, shown: string, help: string, fallback: string): Option<T> {
  return { ...kind, shown, help, fallback, is: 'optional' };
}

export function optional<T>(kind: Kind<T>, shown: string, help: string): Option<T | undefined> {
  return { ...kind, shown, help, is: 'optional' };
}

export function needed<T>(kind: Kind<T>, shown: string, help: string): Option<T> {
  return { ...kind, shown, help, is: 'needed' };
}

export function placed<T>(kind: Kind<T>, shown: string, help: string): Option<T> {
  return { ...kind, shown, help, is: 'placed' };
}

export function flag(help: string): Option<boolean> {
  const schema = v.pipe(
    v.picklist(['true', 'false', '1', '0']),
    v.transform((text) => text === 'true' || text === '1'),
  );
  return { allowed: 'true or false', schema, shown: '', help, fallback: 'false', is: 'switch' };
}

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

export const hostPort: Kind<{ host: string; port: number }> = {
  allowed: 'HOST:PORT, such as 127.0.0.1:9100 or [::1]:9100',
  schema: v.pipe(
    v.string(),
    v.transform((text) => /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]+)):(\d{1,5})$/.exec(text)),
    v.check((found) => found !== null && (found[1] === undefined || isIPv6(found[1])) && Number(found[3]) <= 65_535),
    v.transform((found) => ({ host: found![1] ?? found![2], port: Number(found![3]) })),
  ),
};

/** URLs take more for one, such as `*`. */
const HOST = /^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])$/;

function webAddress(allowed: string, fits: (url: URL, text: string) => boolean): Kind<string> {
  const isGood = (text: string) => {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    return url !== undefined && /^https?:$/.test(url.protocol) && HOST.test(url.hostname) && fits(url, text);
  };
  return { allowed, schema: v.pipe(v.string(), v.check(isGood)) };
}

const oneOrigin = webAddress('an origin, such as https://shop.example, or *', (url, text) => url.origin === text);
export const origin: Kind<string> = { ...oneOrigin, schema: v.union([v.literal('*'), oneOrigin.schema]) };

export const baseUrl = webAddress(
  'an http or https address that ends in /v1, such as https://api.example/v1',
  (url, text) => url.origin + url.pathname === text && text.endsWith('/v1'),
);

const UNITS_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

export function duration(maxMs: number): Kind<number> {
  const schema = v.pipe(
    v.string(),
    v.regex(/^\d{1,9}[smhd]$/),
    v.transform((text) => Number(text.slice(0, -1)) * UNITS_MS[text.at(-1) as keyof typeof UNITS_MS]),
    v.maxValue(maxMs),
  );
  return { allowed: `a time such as 90s, 15m, 24h or 7d, at most ${maxMs / UNITS_MS.d}d`, schema };
}
