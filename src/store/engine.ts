/** The interface between the operator's side and an engine: a store, its limiter, the upkeep of both, and its errors. */
import type { Limiter } from '../access/limiter.ts';
import type { Clock } from '../clock.ts';
import { type Store, StoreError, type TableName } from './model.ts';

/** What a store holds, to compare two of them: the same rows have the same digest, in whichever engine. */
export interface Proof {
  readonly counts: Readonly<Record<TableName, number>>;
  readonly digest: string;
}

export interface Metric {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge';
  readonly value: number;
}

export interface Engine {
  readonly store: Store;
  readonly limiter: Limiter;
  /** Whether requests can be served now: the answer of /readyz. */
  ready(): boolean;
  metrics(): Metric[];
  /** Reads everything that is stored, and checks it. Changes nothing. */
  verify(): Promise<Proof>;
  /** Writes the store anew without what later rows have replaced. Resolves with one sentence on what was done. */
  compact(): Promise<string>;
  /** The store as of one moment, in the lines of the file format, header first. Returns the proof. */
  backup(): AsyncGenerator<Uint8Array, Proof>;
  /** Makes what was accepted durable, writes the last usage, and frees everything. */
  close(): Promise<void>;
}

type LogLine = (message: string, fields?: Record<string, unknown>) => void;
export type Log = Record<'info' | 'warn' | 'error', LogLine>;

export interface EngineOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** Refusals in a minute that ban a key; 0: never; undefined: five times its limit a minute. */
  readonly banAfter?: number;
  /** The most bytes that the compacted store may have. */
  readonly maxBytes?: number;
  /** True: a missing store is an error. False: a new one is made. */
  readonly mustExist?: boolean;
  /** True: nothing is written and no lock is taken; works on a read-only mount, and beside a running server. */
  readonly readOnly?: boolean;
  /** Called if it is unknown what is on the disk: the process must end. */
  readonly onFatal?: (error: Error) => void;
  /** Called after each durable batch, with the time that it took. */
  readonly onBatch?: (ms: number) => void;
}

const ADVICE =
  'Nothing was changed. Restore a backup; docs/operating.md says how to cut the file there if you have none, and what that risks.';

/** What was written is not what is read: while the store is opened, or later by a request. Exit status 3. */
export class DamagedError extends StoreError {
  constructor(where: string, what: string, advice = ADVICE) {
    super('unavailable', `damaged data: ${where}: ${what}. ${advice}`);
  }
}

/** There is no store in the directory, and none is to be made. */
export class NoStoreError extends Error {
  readonly dir: string;

  constructor(dir: string) {
    super(`there is no store in ${dir}`);
    this.dir = dir;
  }
}

/** Another process has the store open. Exit status 4. */
export class InUseError extends Error {}

/** The store was written in another format: it is not damaged, and stays as it is. */
export class VersionError extends Error {}
