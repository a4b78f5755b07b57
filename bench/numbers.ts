/** Statistics of rounds, numbers as they are printed, and random numbers that are the same in each run. */

export interface Spread {
  median: number;
  /** The lower and the upper quartile. */
  low: number;
  high: number;
  /** The quartiles lie so wide apart that the median is no result, in whichever direction it points. */
  tooNoisy: boolean;
}

/** Of the median: quartiles that are further apart say nothing about a difference of some per cent. */
const NOISY = 0.15;
const SEED = 0x9e3779b9;

export function spread(values: number[]): Spread {
  const [low, median, high] = [0.25, 0.5, 0.75].map((share) => quantile(values, share));
  return { median, low, high, tooNoisy: !(high - low <= NOISY * Math.abs(median)) };
}

/** Between two values it is on the line from one to the other. */
export function quantile(values: number[], share: number): number {
  if (values.length === 0) return Number.NaN;
  const sorted = values.toSorted((a, b) => a - b);
  const at = (sorted.length - 1) * share;
  const below = sorted[Math.floor(at)];
  return below + (sorted[Math.ceil(at)] - below) * (at % 1);
}

/** Round by round, because the two of a round were measured one after the other. */
export function ratios(first: number[], second: number[]): Spread {
  return spread(first.map((value, round) => value / second[round]));
}

export function number(value: number | undefined, digits = 0): string {
  if (value === undefined || !Number.isFinite(value)) return '–';
  return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

export const range = ({ low, high }: Spread, digits: number) => `${number(low, digits)}–${number(high, digits)}`;

/** The median, unless it is too noisy: then the quartiles. */
export function spreadText(value: Spread | undefined, digits: number): string {
  if (value === undefined || Number.isNaN(value.median)) return '–';
  return value.tooNoisy ? `noisy ${range(value, digits)}` : number(value.median, digits);
}

/** Integers from 0 to below `limit`. */
export function randomIntegers(limit: number): () => number {
  let state = SEED;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
}
