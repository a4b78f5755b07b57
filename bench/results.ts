/** What a run leaves behind: for the table, the report and `--json` alike. */
import type { AimId } from './aims.ts';
import type { Machine } from './machine.ts';
import type { Latency, Spread } from './measure.ts';

/** One subject under one kind of load. */
export interface Row {
  suite: string;
  subject: string;
  how: string;
  /** Absent where the rate was given: then latency is what was measured. */
  perSecond?: Spread;
  /** Server CPU time a request, in microseconds. */
  cpuMicros?: Spread;
  latency?: Latency;
  memoryMb?: number;
  /** How late the sender itself was at p99, in ms: in the latency, and not the server's fault. */
  senderLateMs?: number;
}

/** The service against another, round by round. */
export interface Ratio {
  suite: string;
  against: string;
  throughput: Spread;
  /** CPU time a request: below 1 means that the service needs less. */
  cpu: Spread;
}

/** A figure that fits no row: its name, the value as it is to be read, and where it matters what it says. */
export interface Figure {
  suite: string;
  name: string;
  value: string;
}

export interface GrowthPoint {
  animals: number;
  firstPerSecond: number;
  randomPerSecond: number;
  rarePerSecond: number;
  memoryMb: number;
  startSeconds: number;
}

export interface Reached {
  aim: AimId;
  value?: Spread;
  /** The same from server CPU time a request, which a busy machine moves far less than throughput. */
  byCpu?: number;
  /** Why there is no value. */
  missing?: string;
}

export interface Results {
  machine: Machine;
  began: string;
  tookSeconds: number;
  secondsEach: number;
  rounds: number;
  /** Share of the machine's processor time that went to programs which are no part of the run. */
  othersShare?: number;
  rows: Row[];
  ratios: Ratio[];
  figures: Figure[];
  growth: GrowthPoint[];
  reached: Reached[];
  notes: string[];
}
