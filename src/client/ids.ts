/** Ids as the client gives and takes them, exact to the last digit. */
import { parseInt64 } from '../json/int64.ts';
import { invalid, shown } from './errors.ts';

/**
 * An id, exact to its last digit: a number up to 2^53 − 1, beyond that its decimal digits as a string, such as
 * `'9007199254740993'`. So it equals itself under `===`, fits a Map, and survives JSON.stringify and JSON.parse, which
 * a bigint does not. The service counts its own ids from 1: only a category's, which callers choose, is ever so large.
 */
export type Id = number | string;

/** An id as an argument: also a bigint. A number beyond 2^53 − 1 is refused, for it may be rounded already. */
export type AnyId = Id | bigint;

export function writeId(id: AnyId, name: string): string {
  const written = shown(id);
  const isExact = typeof id === 'number' ? Number.isSafeInteger(id) : typeof id === 'string' || typeof id === 'bigint';
  if (isExact && parseInt64(written) !== undefined) return written;
  const right = 'an int64; beyond 2^53 − 1 as a bigint or a string of digits';
  throw invalid(`${name}: must be ${right} (got ${written})`);
}

export const readId = (digits: string): Id => (Number.isSafeInteger(Number(digits)) ? Number(digits) : digits);

/** A string, closed or not, or a number. A match never fails after its first character: so none is read twice. */
const STRING_OR_NUMBER = /"[^"\\]*(?:\\[\s\S][^"\\]*)*"?|-?\d[\d.eE+-]*/g;
const LONG = /^-?\d{16,}$/;

/** JSON as JSON.parse gives it, but for integers beyond 2^53 − 1: those are strings of digits. */
export function parseJson(text: string): unknown {
  const isInexact = (token: string) => LONG.test(token) && !Number.isSafeInteger(Number(token));
  return JSON.parse(text.replace(STRING_OR_NUMBER, (token) => (isInexact(token) ? `"${token}"` : token)));
}
