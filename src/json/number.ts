import type { Int64 } from '../store/model.ts';
import { MAX_INT64_DIGITS, toInt64 } from './int64.ts';

/** A JSON number that is no int64, kept as it was written, so that no rounding can make an integer of it. */
export class Decimal {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

const PARTS = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;

/**
 * The value of a well-formed JSON number. Only digits that can belong to an int64 are ever turned into one:
 * a huge exponent or a long run of digits costs no more than looking at its text once.
 */
export function numberOf(text: string): Int64 | Decimal {
  const [, sign, whole, fraction = '', exponent = '0'] = PARTS.exec(text)!;
  const digits = whole + fraction;
  // Loops, because /0+$/ would start anew at every zero that is not at the end.
  let first = 0;
  while (digits[first] === '0') first++;
  if (first === digits.length) return 0;
  let end = digits.length;
  while (digits[end - 1] === '0') end--;
  // Rounded only beyond 2^53 (at most to Infinity), where no text is long enough to bring it back.
  const zeros = Number(exponent) - fraction.length + (digits.length - end);
  if (zeros < 0 || end - first + zeros > MAX_INT64_DIGITS) return new Decimal(text);
  return toInt64(BigInt(sign + digits.slice(first, end) + '0'.repeat(zeros))) ?? new Decimal(text);
}
