/** Ids as the client gives and takes them, exact to the last digit. */
import { parseInt64 } from '../json/int64.ts';
import { Decimal, type JsonValue } from '../json/reader.ts';
import { PetstoreError } from './errors.ts';

/**
 * An id, exact to its last digit: a number up to 2^53 − 1, beyond that its decimal digits as a string, such as
 * `'9007199254740993'`. So it equals itself under `===`, fits a Map, and survives JSON.stringify and JSON.parse, which
 * a bigint does not. The service counts its own ids from 1: only a category's, which callers choose, is ever so large.
 */
export type Id = number | string;

/** What is taken for an id: also a bigint. A number beyond 2^53 − 1 is refused, for it may be rounded already. */
export type AnyId = Id | bigint;

export function writeId(id: AnyId, name: string): string {
  const written = String(id);
  const isExact = typeof id !== 'number' || Number.isSafeInteger(id);
  if (isExact && parseInt64(written) !== undefined) return written;
  const right = 'an int64; beyond 2^53 − 1 as a bigint or a string of digits';
  throw new PetstoreError('invalid_argument', `${name}: must be ${right} (got ${written})`);
}

/** JSON as JSON.parse gives it, but for ids beyond 2^53 − 1. */
export function plain(json: JsonValue): unknown {
  if (typeof json === 'bigint') return String(json);
  if (json instanceof Decimal) return Number(json.text);
  if (Array.isArray(json)) return json.map(plain);
  if (json instanceof Map) return Object.fromEntries([...json].map(([name, value]) => [name, plain(value)]));
  return json;
}
