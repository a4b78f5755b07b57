/** What a run leaves behind: for the tables and `--json` alike. */
import type { Spread } from './numbers.ts';

/** One server under the load of one path. */
export interface Row {
  path: string;
  subject: string;
  perSecond: Spread;
  /** The load generator and not the server was busy all the time: `perSecond` is at least so high. */
  loadIsLimit: boolean;
  /** Server CPU time a request; absent where the system does not tell it. */
  cpuMicros?: Spread;
  /** In ms. `isAtMost`: the load generator itself was late, and that is part of it. */
  latency?: { perSecond: number; p50: Spread; p99: Spread; isAtMost: boolean };
  /** The service against this server, by neighbouring rounds: above 1 the service is better. Absent in its own rows. */
  service?: {
    /** Requests a second; absent where the load generator limited one of the two. */
    throughput?: Spread;
    /** Requests a second of CPU time. */
    cpu?: Spread;
  };
  /** What this server leaves out of the service's work. */
  leavesOut?: string;
}

/** By how much `path` is more than `against`. */
export interface Figure {
  path: string;
  against: string;
  more: number;
  unit: string;
}

export interface Results {
  machine: Record<string, string>;
  rows: Row[];
  figures: Figure[];
}
