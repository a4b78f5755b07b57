/** Statistics of rounds, and numbers as they are printed. */

export interface Spread {
  median: number;
  /** The lower and the upper quartile. */
  low: number;
  high: number;
}

/** Quartiles further apart than this part of the median say nothing about a difference of some per cent. */
const NOISY = 0.15;

export function spread(values: number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  return { median: quantile(sorted, 0.5), low: quantile(sorted, 0.25), high: quantile(sorted, 0.75) };
}

/** Between two values it is on the line from one to the other. */
export function quantile(sorted: number[], share: number): number {
  if (sorted.length === 0) return Number.NaN;
  const at = (sorted.length - 1) * share;
  const below = sorted[Math.floor(at)];
  return below + (sorted[Math.ceil(at)] - below) * (at % 1);
}

/** Round by round, because the two of a round were measured one after the other. */
export function ratios(first: number[], second: number[]): Spread {
  return spread(first.map((value, round) => value / second[round]));
}

export function isNoisy({ median, low, high }: Spread): boolean {
  return !(high - low <= NOISY * Math.abs(median));
}

export function number(value: number | undefined, digits = 0): string {
  if (value === undefined || !Number.isFinite(value)) return '–';
  return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** A ratio that its own quartiles contradict is not told as one, whether it would please or not. */
export function ratioText(ratio: Spread | undefined): string {
  if (ratio === undefined) return '–';
  return isNoisy(ratio) ? `too noisy (${range(ratio, 2)})` : number(ratio.median, 2);
}

export function range({ low, high }: Spread, digits: number): string {
  return `${number(low, digits)} to ${number(high, digits)}`;
}
