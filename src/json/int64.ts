import type { Int64 } from '../store/model.ts';

export const MIN_INT64 = -(2n ** 63n);
export const MAX_INT64 = 2n ** 63n - 1n;
/** The digits of MAX_INT64, without sign. */
export const MAX_INT64_DIGITS = 19;

/** A number where that is exact, a bigint beyond; undefined outside int64. */
export function toInt64(value: bigint): Int64 | undefined {
  if (value < MIN_INT64 || value > MAX_INT64) return undefined;
  const near = Number(value);
  return Number.isSafeInteger(near) ? near : value;
}

/** So many characters are a safe integer whatever they say. */
const SAFE_CHARS = 15;
const CANONICAL = /^(0|-?[1-9]\d*)$/;

/** Reads the one decimal text that an int64 has: no plus, no leading zero, no `-0`, no point, no exponent. */
export function parseInt64(text: string): Int64 | undefined {
  if (text.length > MAX_INT64_DIGITS + 1 || !CANONICAL.test(text)) return undefined;
  return text.length <= SAFE_CHARS ? Number(text) : toInt64(BigInt(text));
}

/** The text that `parseInt64` reads, which is also its JSON: JSON.stringify refuses a bigint. */
export function int64Text(value: Int64): string {
  return value.toString();
}
