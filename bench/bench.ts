/** One run of the benchmarks: where it works, what it has started, what it has found so far. */
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { AIMS, type AimId } from './aims.ts';
import { type Cores, describeMachine, findCores, ProcessorWatch, programOnPath } from './machine.ts';
import type { Spread } from './measure.ts';
import type { Results } from './results.ts';

/** A sender later than this at p99 colours what it measures. */
const LATE_MS = 1;
/** With a larger share of the processor in other hands, a machine is not quiet. */
const QUIET_SHARE = 0.05;

export interface BenchOptions {
  /** How long each load lasts. */
  seconds: number;
  /** How long the soak lasts in all. */
  soakSeconds: number;
  rounds: number;
  peers: boolean;
  progress: (line: string) => void;
}

export class Bench {
  readonly seconds: number;
  readonly soakSeconds: number;
  readonly rounds: number;
  readonly wantsPeers: boolean;
  /** Everything that is written while measuring: removed at the end. */
  readonly folder = mkdtempSync(path.join(os.tmpdir(), 'petstore-bench-'));
  readonly cores: Cores | undefined = findCores();
  readonly wrk = programOnPath('wrk');
  readonly results: Results;
  readonly #progress: (line: string) => void;
  readonly #made = new Map<string, Promise<string>>();
  readonly #stops = new Set<() => Promise<void>>();
  readonly #began = performance.now();
  readonly #watch = new ProcessorWatch();
  #files = 0;

  constructor(options: BenchOptions) {
    this.seconds = options.seconds;
    this.soakSeconds = options.soakSeconds;
    this.rounds = options.rounds;
    this.wantsPeers = options.peers;
    this.#progress = options.progress;
    this.results = {
      machine: describeMachine(this.cores, this.wrk !== undefined && Number.isInteger(options.seconds)),
      began: new Date().toISOString(),
      tookSeconds: 0,
      secondsEach: options.seconds,
      rounds: options.rounds,
      rows: [],
      ratios: [],
      figures: [],
      growth: [],
      reached: [],
      notes: [],
    };
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
    let made = this.#made.get(name);
    if (!made) this.#made.set(name, (made = make()));
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

  miss(aim: AimId, missing: string): void {
    this.results.reached.push({ aim, missing });
  }

  /** What a suite had not reached when it failed, it missed. */
  fail(suite: string, why: string): void {
    this.note(`${suite} FAILED: ${why}`);
    const open = AIMS.filter(({ id }) => !this.results.reached.some(({ aim }) => aim === id));
    for (const { id } of open.filter((aim) => aim.suite === suite)) this.miss(id, 'the suite failed');
  }

  /** Called when the run ends, however it ends, unless forgotten before. */
  atEnd(stop: () => Promise<void>): void {
    this.#stops.add(stop);
  }

  forget(stop: () => Promise<void>): void {
    this.#stops.delete(stop);
  }

  /** Whatever a suite left running, as it does when it fails. */
  async stopAll(): Promise<void> {
    await Promise.all([...this.#stops].map((stop) => stop()));
    this.#stops.clear();
  }

  async end(): Promise<void> {
    await this.stopAll();
    rmSync(this.folder, { recursive: true, force: true });
    this.results.tookSeconds = (performance.now() - this.#began) / 1000;
    this.results.othersShare = this.#watch.othersShare();
    this.#noteNoise();
  }

  #noteNoise(): void {
    const { rows, othersShare = 0 } = this.results;
    if (othersShare > QUIET_SHARE) {
      const percent = (100 * othersShare).toFixed(0);
      this.note(
        `Other programs took ${percent} % of the processor time meanwhile: take the figures on a quiet machine.`,
      );
    }
    const late = rows.map((row) => row.senderLateMs ?? 0).filter((ms) => ms > LATE_MS);
    if (late.length > 0) {
      const most = Math.max(...late).toFixed(1);
      this.note(`In ${late.length} loads at a fixed rate the sender itself was late, up to ${most} ms at p99.`);
    }
  }
}
