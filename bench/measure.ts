/** Numbers about a run: latencies, spread over rounds, and what the kernel knows about a process. */
import { readFileSync } from 'node:fs';

const EXACT_BELOW_MICROSECONDS = 128;
const BUCKETS_PER_DOUBLING = 64;
const DOUBLINGS = 25;

/** Latencies in buckets that are at most 1/64 wide, so that a million of them cost a few kilobytes. */
export class Histogram {
  readonly #counts = new Float64Array(EXACT_BELOW_MICROSECONDS + DOUBLINGS * BUCKETS_PER_DOUBLING);
  count = 0;
  maxMs = 0;

  record(ms: number): void {
    const index = Math.min(bucketOf(Math.max(0, Math.round(ms * 1000))), this.#counts.length - 1);
    this.#counts[index]++;
    this.count++;
    if (ms > this.maxMs) this.maxMs = ms;
  }

  /** The latency that `share` of all stayed within, in ms. */
  percentile(share: number): number {
    if (this.count === 0) return Number.NaN;
    const wanted = Math.ceil(share * this.count);
    let seen = 0;
    for (let i = 0; i < this.#counts.length; i++) {
      seen += this.#counts[i];
      if (seen >= wanted) return Math.min(topOf(i) / 1000, this.maxMs);
    }
    return this.maxMs;
  }

  summary(): Latency {
    const [p50, p90, p99, p999] = [0.5, 0.9, 0.99, 0.999].map((share) => this.percentile(share));
    return { p50, p90, p99, p999, max: this.maxMs };
  }
}

function bucketOf(microseconds: number): number {
  if (microseconds < EXACT_BELOW_MICROSECONDS) return microseconds;
  const shift = 31 - Math.clz32(microseconds) - 6;
  return (
    EXACT_BELOW_MICROSECONDS + (shift - 1) * BUCKETS_PER_DOUBLING + ((microseconds >>> shift) - BUCKETS_PER_DOUBLING)
  );
}

function topOf(index: number): number {
  if (index < EXACT_BELOW_MICROSECONDS) return index;
  const shift = Math.floor((index - EXACT_BELOW_MICROSECONDS) / BUCKETS_PER_DOUBLING) + 1;
  const step = ((index - EXACT_BELOW_MICROSECONDS) % BUCKETS_PER_DOUBLING) + BUCKETS_PER_DOUBLING;
  return (step + 1) * 2 ** shift - 1;
}

/** In milliseconds. */
export interface Latency {
  p50: number;
  p90: number;
  p99: number;
  p999: number;
  max: number;
}

export interface Spread {
  median: number;
  min: number;
  max: number;
}

export function spread(values: number[]): Spread {
  const known = values.filter((value) => !Number.isNaN(value)).sort((a, b) => a - b);
  if (known.length === 0) return { median: Number.NaN, min: Number.NaN, max: Number.NaN };
  const middle = known.length >> 1;
  const median = known.length % 2 === 1 ? known[middle] : (known[middle - 1] + known[middle]) / 2;
  return { median, min: known[0], max: known[known.length - 1] };
}

/** Round by round, because the two of a round were measured side by side. */
export function ratios(first: number[], second: number[]): Spread {
  return spread(first.map((value, round) => value / second[round]));
}

const TICKS_PER_SECOND = 100;

/** CPU seconds that a process and all below it have used so far; NaN where there is no /proc. */
export function cpuSeconds(pid: number): number {
  const stat = read(`/proc/${pid}/stat`);
  if (stat === undefined) return Number.NaN;
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [user, system] = [Number(fields[11]), Number(fields[12])];
  const children = (read(`/proc/${pid}/task/${pid}/children`) ?? '').split(' ').filter(Boolean).map(Number);
  return children.reduce((sum, child) => sum + (cpuSeconds(child) || 0), (user + system) / TICKS_PER_SECOND);
}

/** Resident memory of a process in megabytes (10^6 bytes); NaN where there is no /proc. */
export function residentMb(pid: number): number {
  const line = /^VmRSS:\s+(\d+) kB/m.exec(read(`/proc/${pid}/status`) ?? '');
  return line ? (Number(line[1]) * 1024) / 1e6 : Number.NaN;
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    return undefined;
  }
}
