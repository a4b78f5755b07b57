/**
 * Group commit, for both engines: the transactions that wait become one batch, which is made durable as a whole. They
 * run one after the other, each on the rows as the ones before it leave them. One that throws changes nothing, and the
 * others go on.
 */
import { type Clock, onceAMinute } from '../clock.ts';
import type { EngineOptions, Log } from './engine.ts';
import { type Reads, type Store, StoreError, type Transaction } from './model.ts';
import type { Changes, Tables } from './tables.ts';
import { Draft } from './transaction.ts';

/** The most transactions that wait. Further ones are refused. */
const MAX_WAITING = 4_096;
/** How many turns of the event loop a batch waits for more transactions at most. */
const MAX_GATHERING_TURNS = 5;
/** With so many transactions it waits for no more. */
const ENOUGH = 64;

/**
 * How an engine commits a batch. It brings the tables up to date, calls `decide`, which runs the transactions that wait
 * and returns what they change, makes these changes durable, and applies them to the tables. It calls `decide` once, or
 * rejects before it does. It rejects with a StoreError, or with the error of a line that would be too long.
 */
export type Commit = (decide: () => Changes) => Promise<void>;

interface Waiting {
  work(tx: Transaction): unknown;
  resolve(result: unknown): void;
  reject(error: unknown): void;
}

interface Options {
  readonly tables: Tables;
  readonly commit: Commit;
  readonly maxBytes?: number;
  /** Told once a minute why writes are refused; undefined: who writes tells of it. */
  readonly log?: Log;
  readonly onBatch?: EngineOptions['onBatch'];
}

export class GroupCommitStore implements Store {
  readonly read: Reads;
  readonly #options: Options;
  #waiting: Waiting[] = [];
  #committing: Promise<void> | undefined;
  #isClosed = false;
  readonly #mayWarn = onceAMinute(() => this.now());

  constructor(options: Options) {
    this.read = options.tables;
    this.#options = options;
  }

  now(): number {
    return this.#options.tables.now();
  }

  write<T>(work: (tx: Transaction) => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.#isClosed) return reject(new StoreError('closed', 'the store is closed'));
      if (this.#waiting.length >= MAX_WAITING) return reject(new StoreError('busy', 'too many writes are waiting'));
      this.#waiting.push({ work, resolve: resolve as Waiting['resolve'], reject });
      this.#committing ??= this.#commitAll();
    });
  }

  /** Resolves when all that was accepted has ended. No more is accepted. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#committing;
  }

  async #commitAll(): Promise<void> {
    for (await this.#gather(); this.#waiting.length > 0; await this.#gather()) await this.#commitBatch();
    this.#committing = undefined;
  }

  async #commitBatch(): Promise<void> {
    const began = performance.now();
    const batch = this.#waiting;
    const answers: (() => void)[] = [];
    let changes: Changes = [];
    const decide = () => {
      this.#waiting = []; // who comes from here on is in the next batch
      return (changes = this.#run(batch, answers));
    };
    try {
      await this.#options.commit(decide);
      if (changes.length > 0) this.#options.onBatch?.(performance.now() - began);
      for (const answer of answers) answer();
    } catch (error) {
      this.#warn(error);
      for (const { reject } of batch.splice(0)) reject(error); // of all that wait, if none has run
    }
  }

  /**
   * For speed: waits a few turns of the event loop for as long as more transactions come. Clients that were answered
   * together write again at about the same time, and then share one batch.
   */
  async #gather(): Promise<void> {
    let before = -1;
    for (let turn = 0; turn < MAX_GATHERING_TURNS; turn++) {
      if (this.#waiting.length <= before || this.#waiting.length >= ENOUGH) return;
      before = this.#waiting.length;
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /**
   * Runs the transactions of a batch, and returns what they change. All are answered when that is durable, those that
   * throw too: each may have seen rows of the batch.
   */
  #run(batch: Waiting[], answers: (() => void)[]): Changes {
    const { tables, maxBytes } = this.#options;
    tables.dropEndedReplays();
    const draft = new Draft(tables, maxBytes);
    for (const { work, resolve, reject } of batch) {
      try {
        const result = draft.run(work);
        answers.push(() => resolve(result));
      } catch (error) {
        this.#warn(error);
        answers.push(() => reject(error));
      }
    }
    return draft.changes;
  }

  /** Of what clients get 503 or 507 for. */
  #warn(error: unknown): void {
    const isRefusal = error instanceof StoreError && error.failure !== 'closed';
    if (isRefusal && this.#mayWarn()) this.#options.log?.warn(`writes are refused: ${error.message}`);
  }
}

/** Store time: the wall clock as it is now, but never before `notBefore`; monotonic from here on. */
export function storeTime(clock: Clock, notBefore = 0): () => number {
  const offset = Math.max(clock.wall(), notBefore) - clock.now();
  return () => Math.max(notBefore, Math.floor(clock.now() + offset));
}
