/** Counts of durations, by buckets, and their lines in Prometheus' text format. */

const BUCKETS_MS = [0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000];

/** The last count, without a bound, is for the slowest requests. */
export interface Histogram {
  counts: Float64Array;
  sumMs: number;
}

export const newHistogram = (): Histogram => ({ counts: new Float64Array(BUCKETS_MS.length + 1), sumMs: 0 });

export function add(histogram: Histogram, ms: number): void {
  let bucket = 0;
  while (ms > BUCKETS_MS[bucket]) bucket++;
  histogram.counts[bucket]++;
  histogram.sumMs += ms;
}

/** `label`: such as `route="listPets"`. */
export function linesOf({ counts, sumMs }: Histogram, name: string, label = ''): string[] {
  let count = 0;
  const buckets = Array.from(counts, (more, at) => {
    const le = at < BUCKETS_MS.length ? BUCKETS_MS[at] / 1_000 : '+Inf';
    count += more;
    return `${name}_bucket{${label && `${label},`}le="${le}"} ${count}`;
  });
  const own = label && `{${label}}`;
  return [...buckets, `${name}_sum${own} ${sumMs / 1_000}`, `${name}_count${own} ${count}`];
}
