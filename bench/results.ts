/** What a run leaves behind: for the table, the page and `--json` alike. */
import type { Fact } from './machine.ts';
import type { Spread } from './numbers.ts';

export type Part = 'list' | 'get' | 'limit' | 'create' | 'limiter' | 'scale' | 'store' | 'wrk';

/** One server under the load of one path. */
export interface Row {
  part: Part;
  path: string;
  subject: string;
  connections: number;
  perSecond: Spread;
  /** Server CPU time a request; absent where the system does not tell it. */
  cpuMicros?: Spread;
  /** In ms. `isAtMost`: the load generator itself was late, and that is part of it. */
  latency?: { perSecond: number; p50: number; p99: number; max: number; isAtMost: boolean };
  /** The load generator and not the server was busy all the time: `perSecond` is at least so high. */
  loadIsLimit: boolean;
}

/** The service against another server, round by round: above 1 means that the service is better. */
export interface Ratio {
  part: Part;
  path: string;
  against: string;
  throughput: Spread;
  cpu?: Spread;
  loadIsLimit: boolean;
}

/** What is neither a row nor a ratio of two rows. */
export interface Figure {
  part: Part;
  path: string;
  against?: string;
  value: Spread;
  unit: string;
}

export interface Results {
  machine: Fact[];
  rows: Row[];
  ratios: Ratio[];
  figures: Figure[];
  /** What each peer that was measured leaves out of the service's work. */
  leftOut: Record<string, string>;
  notes: string[];
}
