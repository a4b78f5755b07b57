/** Integers of 64 bits: a number where it is exact, else a bigint. A template literal writes both as JSON does. */
export type Int64 = number | bigint;

export const MIN_INT64 = -(2n ** 63n);
export const MAX_INT64 = 2n ** 63n - 1n;
const MAX_DIGITS = String(MAX_INT64).length;
const CANONICAL = /^(0|-?[1-9]\d*)$/;

/** Reads the one decimal text that an int64 has: no plus, no leading zero, no `-0`, no point, no exponent. */
export function parseInt64(text: string): Int64 | undefined {
  return text.length <= MAX_DIGITS + 1 && CANONICAL.test(text) ? toInt64(BigInt(text)) : undefined;
}

/**
 * The value of a JSON number such as `-12.50e3` (sign, `1250`, 1), if it is an int64. A BigInt is made
 * only of digits that can fit: a huge exponent or a long run of digits costs no more than looking at it once.
 */
export function int64Of(sign: string, digits: string, exponent: number): Int64 | undefined {
  // Loops, because /0+$/ would start anew at every zero that is not at the end.
  let first = 0;
  while (digits[first] === '0') first++;
  if (first === digits.length) return 0;
  let end = digits.length;
  while (digits[end - 1] === '0') end--;
  const zeros = exponent + (digits.length - end);
  if (zeros < 0 || end - first + zeros > MAX_DIGITS) return undefined;
  return toInt64(BigInt(sign + digits.slice(first, end) + '0'.repeat(zeros)));
}

function toInt64(value: bigint): Int64 | undefined {
  if (value < MIN_INT64 || value > MAX_INT64) return undefined;
  const near = Number(value);
  return Number.isSafeInteger(near) ? near : value;
}
