/** Statistics of rounds, numbers as they are printed, and random numbers that are the same in each run. */

/** A median, and the interval that the true one lies in with 95 % or more, if the rounds are independent of each other. */
export interface Spread {
  median: number;
  low: number;
  high: number;
  /** The interval is so wide that the median is no result, in whichever direction it points. */
  tooNoisy: boolean;
}

/** Of the median: a wider interval says nothing about a difference of some per cent. */
const NOISY = 0.1;
/** The chance that the true median lies beyond one end of the interval. */
const BEYOND = 0.025;
const SEED = 0x9e3779b9;

/** Of few rounds, 5 or less, the interval has all values, and holds the median with less than 95 %. */
export function spread(values: number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  const median = quantile(sorted, 0.5);
  const outside = outsideInterval(sorted.length);
  const [low, high] = [sorted.at(outside) ?? Number.NaN, sorted.at(-1 - outside) ?? Number.NaN];
  return { median, low, high, tooNoisy: !(high - low <= NOISY * Math.abs(median)) };
}

/**
 * How many values lie outside the interval at each end. Each value is below the true median with a chance of one half,
 * so the number of those below is binomial, whatever the values are distributed like.
 */
function outsideInterval(count: number): number {
  let term = 0.5 ** count; // the chance that exactly `below` of them are below it
  let sum = 0;
  let below = 0;
  while (sum + term <= BEYOND) {
    sum += term;
    term *= (count - below) / (below + 1);
    below++;
  }
  return Math.max(below - 1, 0);
}

/** Between two values it is on the line from one to the other. */
export function quantile(values: number[], share: number): number {
  if (values.length === 0) return Number.NaN;
  const sorted = values.toSorted((a, b) => a - b);
  const at = (sorted.length - 1) * share;
  const below = sorted[Math.floor(at)];
  return below + (sorted[Math.ceil(at)] - below) * (at % 1);
}

export function number(value: number | undefined, digits = 0): string {
  if (value === undefined || !Number.isFinite(value)) return '–';
  return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** The median, unless it is too noisy: then the interval. */
export function spreadText(value: Spread | undefined, digits: number): string {
  if (value === undefined || Number.isNaN(value.median)) return '–';
  return value.tooNoisy ? `noisy ${range(value, digits)}` : number(value.median, digits);
}

/** The median with its interval behind it. */
export function intervalText(value: Spread | undefined, digits: number): string {
  const isShort = value === undefined || value.tooNoisy || Number.isNaN(value.median);
  return isShort ? spreadText(value, digits) : `${number(value.median, digits)} (${range(value, digits)})`;
}

const range = ({ low, high }: Spread, digits: number) => `${number(low, digits)}–${number(high, digits)}`;

/** Integers from 0 to below `limit`. */
export function randomIntegers(limit: number): () => number {
  let state = SEED;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
}
