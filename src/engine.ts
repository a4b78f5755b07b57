/**
 * The interface between the service and its engine: a store, a limiter, and the upkeep of both. Both engines (on a
 * file, on a database) and their users import these types.
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
  /** Called before the process ends: abandons a compaction under way. */
  giveUp?(): void;
  /** Writes the whole store as one file. The file gets its name only when it is complete and durable. */
  backup(file: string): Promise<Proof>;
  /** Called when another process has just written a backup of this store, for the metrics. */
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
  /** True if requests can be served now: the answer of /readyz. */
  ready(): boolean;
  metrics(): Iterable<Metric>;
  /** Lets time pass for one key: its windows, ban and idempotency records. Writes one durable record. */
  advance(key: ApiKey, ms: number): Promise<void>;
  /**
   * Replaces all animals, orders and categories by `content`, if it is given. Refills the limits of this key, and sets
   * its clock back to real time.
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
  /** Refusals in a minute that ban a key; 0: never; undefined: five times its limit a minute. */
  banAfter?: number;
  log: Log;
  /** The most bytes of the heap that the stored data may take. */
  maxBytes?: number;
  /** True if a missing store is an error. Otherwise a new store is begun. */
  mustExist?: boolean;
  /** Called when nobody can know which changes were kept: the process must then end, with a status that is not 0. */
  onFatal?: (error: unknown) => void;
  /** Called after each batch that became durable, with the time that it took. */
  onBatch?: (ms: number) => void;
  /** Called with each batch when it is durable, before its callers are answered. */
  onDurable?: (changes: readonly Change[]) => void;
  /** Makes the limiter, if several threads share one; by default a limiter of this process alone. */
  limiter?: (options: LimiterOptions) => SlotLimiter;
  onProgress?: (done: number, total: number) => void;
}
