/** Numbers as text, on the way of every reply. */
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

/** The text made of one or two numbers, made anew only when they differ from those before. */
export function newest(make: (a: number, b: number) => string): (a: number, b?: number) => string {
  let [lastA, lastB, text] = [Number.NaN, Number.NaN, ''];
  return (a, b = 0) => {
    if (a !== lastA || b !== lastB) [lastA, lastB, text] = [a, b, make(a, b)];
    return text;
  };
}
