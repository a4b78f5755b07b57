/** One run of the benchmarks: where it works, what it has started, what it has found so far. */
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { AIMS, type AimId } from './aims.ts';
import { type Cores, describeMachine, type Fact, findCores } from './machine.ts';
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
}

/** The service against another, round by round. CPU time a request: below 1 means that the service needs less. */
export interface Ratio {
  suite: string;
  against: string;
  throughput: Spread;
  cpu: Spread;
}

export interface Growth {
  animals: number;
  firstPerSecond: number;
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

/** What a run leaves behind: for the table, the report and `--json` alike. */
export interface Results {
  machine: Fact[];
  rows: Row[];
  ratios: Ratio[];
  /** What fits no row, as it is to be read. */
  figures: { suite: string; name: string; value: string }[];
  growth: Growth[];
  reached: Reached[];
  notes: string[];
}

export interface BenchOptions {
  /** How long each load lasts. */
  seconds: number;
  rounds: number;
  peers: boolean;
  progress: (line: string) => void;
}

export class Bench {
  readonly seconds: number;
  readonly rounds: number;
  readonly wantsPeers: boolean;
  /** Everything that is written while measuring: removed at the end. */
  readonly folder = mkdtempSync(path.join(os.tmpdir(), 'petstore-bench-'));
  readonly cores: Cores | undefined = findCores();
  readonly results: Results;
  readonly #progress: (line: string) => void;
  readonly #made = new Map<string, Promise<string>>();
  readonly #stops = new Set<() => Promise<void>>();
  readonly #began = performance.now();
  #files = 0;

  constructor({ seconds, rounds, peers, progress }: BenchOptions) {
    this.seconds = seconds;
    this.rounds = rounds;
    this.wantsPeers = peers;
    this.#progress = progress;
    const machine = describeMachine(this.cores);
    machine.push(['Rounds', `${rounds} of ${seconds} s each, in turn (A B B A); ${new Date().toISOString()}`]);
    this.results = { machine, rows: [], ratios: [], figures: [], growth: [], reached: [], notes: [] };
  }

  progress(text: string): void {
    const seconds = Math.floor((performance.now() - this.#began) / 1000);
    this.#progress(`${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}  ${text}`);
  }

  /** A name in the run's own folder that nothing else has. */
  file(name: string): string {
    return path.join(this.folder, `${++this.#files}-${name}`);
  }

  /** What is needed more than once is made once a run: the bundles. */
  once(name: string, make: () => Promise<string>): Promise<string> {
    const made = this.#made.get(name) ?? make();
    this.#made.set(name, made);
    return made;
  }

  note(text: string): void {
    if (!this.results.notes.includes(text)) this.results.notes.push(text);
  }

  figure(suite: string, name: string, value: string): void {
    this.results.figures.push({ suite, name, value });
  }

  reach(aim: AimId, value: Spread, byCpu?: number): void {
    this.results.reached.push({ aim, value, byCpu });
  }

  /** What a suite has not reached when it ends, it says why. */
  miss(suite: string, missing: string): void {
    const open = AIMS.filter(({ id }) => !this.results.reached.some(({ aim }) => aim === id));
    for (const { id } of open.filter((aim) => aim.suite === suite)) this.results.reached.push({ aim: id, missing });
  }

  /** Called when the suite ends, however it ends, unless forgotten before. */
  atEnd(stop: () => Promise<void>): void {
    this.#stops.add(stop);
  }

  forget(stop: () => Promise<void>): void {
    this.#stops.delete(stop);
  }

  async stopAll(): Promise<void> {
    await Promise.all([...this.#stops].map((stop) => stop()));
    this.#stops.clear();
  }

  async end(): Promise<void> {
    await this.stopAll();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
