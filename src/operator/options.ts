/** What a command's options are, and how the text of one becomes a value. */
import * as v from 'valibot';

/** How a text becomes a value; `allowed` says in words which texts do. */
interface Kind<T> {
  allowed: string;
  schema: v.GenericSchema<string, T>;
}

export interface Option<T> extends Kind<T> {
  /** `placed`: an argument with a place of its own (`keys revoke ID`). `switch`: its name alone turns it on. */
  is: 'defaulted' | 'optional' | 'needed' | 'placed' | 'switch';
  /** What stands for the value in `--help`. */
  shown: string;
  help: string;
  /** What holds where nothing is said: a text as it could be said, of an optional one in words for `--help`. */
  fallback?: string;
}

export type Options = Record<string, Option<unknown>>;
export type Values<O> = { [K in keyof O]: O[K] extends Option<infer T> ? T : never };

const as =
  <I extends Option<unknown>['is']>(is: I) =>
  <T>(kind: Kind<T>, shown: string, help: string, fallback?: string): Option<T> => ({
    ...kind,
    is,
    shown,
    help,
    fallback,
  });

export const option: <T>(kind: Kind<T>, shown: string, help: string, fallback: string) => Option<T> = as('defaulted');
export const optional: <T>(kind: Kind<T>, shown: string, help: string, fallback?: string) => Option<T | undefined> =
  as('optional');
export const needed = as('needed');
export const placed = as('placed');

const kind = <T>(allowed: string, schema: Kind<T>['schema']): Kind<T> => ({ allowed, schema });

export const text = (allowed: string, pattern: RegExp): Kind<string> =>
  kind(allowed, v.pipe(v.string(), v.regex(pattern)));

export const oneOf = <const T extends readonly string[]>(values: T): Kind<T[number]> =>
  kind(values.join(', ').replace(/, ([^,]+)$/, ' or $1'), v.picklist(values));

export function flag(help: string): Option<boolean> {
  const isOn = v.transform((text: 'true' | 'false' | '1' | '0') => text === 'true' || text === '1');
  const schema = v.pipe(v.picklist(['true', 'false', '1', '0']), isOn);
  return { allowed: 'true or false', schema, is: 'switch', shown: '', help, fallback: 'false' };
}

export function integer(min: number, max: number): Kind<number> {
  const digits = v.pipe(v.string(), v.regex(/^\d{1,15}$/), v.transform(Number));
  return kind(`a whole number, ${min} to ${max}`, v.pipe(digits, v.minValue(min), v.maxValue(max)));
}

export const path = text('a path', /^[^\0]{1,4096}$/s);
export const host = text('a host name or an IP address', /^(?:[\w][\w.-]{0,252}|[0-9A-Fa-f:.]{2,45}(?:%\w{1,15})?)$/);

export const hostPort = kind(
  'HOST:PORT, such as 127.0.0.1:9100 or [::1]:9100',
  v.pipe(
    v.string(),
    v.regex(/^(?:\[[0-9A-Fa-f:.]+\]|[\w.-]+):\d{1,5}$/),
    v.transform((text) => {
      const cut = text.lastIndexOf(':');
      return { host: text.slice(0, cut).replace(/[[\]]/g, ''), port: Number(text.slice(cut + 1)) };
    }),
    v.check(({ port }) => port <= 65_535),
  ),
);

/** URLs take more for a host than a host may be, such as `*`. */
const WEB = /^https?:\/\/(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::\d+)?(?:\/[^?#]*)?$/;
const urlOf = (text: string) => (WEB.test(text) && URL.canParse(text) ? new URL(text) : undefined);
export const origin = kind(
  'an origin such as https://shop.example, or *',
  v.pipe(
    v.string(),
    v.check((text) => text === '*' || text === urlOf(text)?.origin),
  ),
);
export const baseUrl = kind(
  'an http or https address that ends in /v1, such as https://api.example/v1',
  v.pipe(
    v.string(),
    v.endsWith('/v1'),
    v.check((text) => text === urlOf(text)?.href),
  ),
);

const UNITS_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

export function duration(maxMs: number): Kind<number> {
  const toMs = (text: string) => Number(text.slice(0, -1)) * UNITS_MS[text.at(-1) as keyof typeof UNITS_MS];
  const schema = v.pipe(v.string(), v.regex(/^\d{1,9}[smhd]$/), v.transform(toMs), v.maxValue(maxMs));
  return kind(`a time such as 90s, 15m, 24h or 7d, up to ${maxMs / UNITS_MS.d}d`, schema);
}
