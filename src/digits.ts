const SMALL = Array.from({ length: 1_000 }, (_, n) => String(n));
const PADDED = SMALL.map((digits) => digits.padStart(3, '0'));

/**
 * The decimal digits of a whole number from 0 on. `String(n)` says the same, but V8 keeps its results for later: where
 * every number is a new one, they only fill the heap, and collecting them costs more than making them.
 */
export function digits(n: number): string {
  if (n < 1_000) return SMALL[n];
  const thousands = Math.floor(n / 1_000);
  return digits(thousands) + PADDED[n - thousands * 1_000];
}
