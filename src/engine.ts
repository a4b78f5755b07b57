/**
 * The seam between the service and what it runs on: a store, a limiter, and what is done to both. Types alone, so that
 * the engine on a file, the one on a database and whoever uses them meet here.
 */
import type { SlotLimiter } from './access/limiter.ts';
import type { Limiter, LimiterOptions } from './access/limits.ts';
import type { Clock } from './clock.ts';
import type { ApiKey, Category, Change, PetColumns, Proof, Store } from './store/model.ts';

export interface Upkeep {
  /** Reads everything on disk, and checks it. `notices`: the faults that the next start will mend by itself. */
  verify(): Promise<Proof & { notices?: string[] }>;
  /** Writes the store anew, without records that later ones have replaced. */
  compact(): Promise<void>;
  /** Before the end, where a compaction may be under way: it is not finished. */
  giveUp?(): void;
  /** The whole store as one file, which has its name only when it is whole and durable. */
  backup(file: string): Promise<Proof>;
  /** Another process has just written a backup of this store; the metrics tell when. */
  backedUp?(): void;
}

export interface Metric {
  name: string;
  help: string;
  type: 'counter' | 'gauge';
  value: number;
}

export interface Engine {
  readonly store: Store;
  readonly limiter: Limiter;
  readonly upkeep: Upkeep;
  /** Whether requests can be served now; told at /readyz. */
  ready(): boolean;
  metrics(): Iterable<Metric>;
  /** Lets time pass for one key: its windows, its ban, the age of its idempotency records. One record, durable. */
  advance(key: ApiKey, ms: number): Promise<void>;
  /**
   * Animals, orders and categories are exactly these from now on, or stay as they are where none are given; the limits
   * of this key are full, its clock is real.
   */
  reset(key: ApiKey, content?: { categories: Category[]; pets: PetColumns }): Promise<void>;
  /** Makes all accepted changes durable, writes the last usage, and frees everything. */
  close(): Promise<void>;
}

type LogLine = (message: string, fields?: Record<string, unknown>) => void;

export interface Log {
  info: LogLine;
  warn: LogLine;
  error: LogLine;
}

export interface EngineOptions {
  clock: Clock;
  /** Refusals in a minute that ban a key; 0: never; absent: five times its limit a minute. */
  banAfter?: number;
  log: Log;
  /** The most bytes of the heap that the stored data may take. */
  maxBytes?: number;
  /** Where there is no store, none is begun. */
  mustExist?: boolean;
  /** Called when nobody can know which changes were kept: the process must then end, with a status that is not 0. */
  onFatal?: (error: unknown) => void;
  /** Told after each batch that became durable, and how long that took. */
  onBatch?: (ms: number) => void;
  /** Told of each batch when it is durable, before anybody else is. */
  onDurable?: (changes: readonly Change[]) => void;
  /** Counts limits, where several threads do; else one that counts for itself. */
  limiter?: (options: LimiterOptions) => SlotLimiter;
  onProgress?: (done: number, total: number) => void;
}
