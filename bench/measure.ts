/** Numbers about a run: latencies, spread over rounds, and what the kernel knows about a process. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';

/** In milliseconds. */
export interface Latency {
  p50: number;
  p90: number;
  p99: number;
  p999: number;
  max: number;
}

/** Of latencies in ms, exact to a thousandth of each. */
export class Latencies {
  readonly #microseconds: RecordableHistogram = createHistogram({ lowest: 1, highest: 100_000_000, figures: 3 });
  longestMs = 0;

  record(ms: number): void {
    this.#microseconds.record(Math.max(1, Math.round(ms * 1_000)));
    if (ms > this.longestMs) this.longestMs = ms;
  }

  percentile(percent: number): number {
    return Math.min(this.#microseconds.percentile(percent) / 1_000, this.longestMs);
  }

  summary(): Latency {
    const [p50, p90, p99, p999] = [50, 90, 99, 99.9].map((percent) => this.percentile(percent));
    return { p50, p90, p99, p999, max: this.longestMs };
  }
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
const NANOSECONDS = 1e9;

/** CPU seconds that a process has used so far; NaN where there is no /proc. */
export function cpuSeconds(pid: number): number {
  const threads = list(`/proc/${pid}/task`).map((id) => read(`/proc/${pid}/task/${id}/schedstat`));
  const nanoseconds = threads.reduce((sum, text) => sum + Number(text?.split(' ')[0] ?? 0), 0);
  return nanoseconds > 0 ? nanoseconds / NANOSECONDS : cpuTicks(pid) / TICKS_PER_SECOND;
}

/** In hundredths of a second, for a kernel that does not tell nanoseconds. */
function cpuTicks(pid: number): number {
  const stat = read(`/proc/${pid}/stat`);
  if (stat === undefined) return Number.NaN;
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return Number(fields[11]) + Number(fields[12]);
}

/** Resident memory of a process in megabytes (10^6 bytes); NaN where there is no /proc. */
export function residentMb(pid: number): number {
  const line = /^VmRSS:\s+(\d+) kB/m.exec(read(`/proc/${pid}/status`) ?? '');
  return line ? (Number(line[1]) * 1024) / 1e6 : Number.NaN;
}

function list(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder) : [];
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    return undefined;
  }
}
