/**
 * Group commit, for both engines. Transactions wait, and those that wait become one batch, which is durable together.
 * They run one after the other, each on the rows that those before it will leave. One that throws leaves nothing, and
 * disturbs no other.
 */
import { type Clock, onceAMinute } from '../clock.ts';
import type { Log } from './engine.ts';
import { type Reads, type Store, StoreError, type Transaction } from './model.ts';
import type { Changes, Tables } from './tables.ts';
import { Draft } from './transaction.ts';

/** The most transactions that wait. Further ones are refused. */
const MAX_WAITING = 4_096;
/** A batch is gathered for so many turns of the event loop at most, and until there are so many transactions. */
const MAX_GATHERING_TURNS = 5;
const ENOUGH = 64;
/** A batch with so much in it takes no more transactions. */
const FULL_BATCH_BYTES = 4 * 1024 * 1024;
/** Shares of the maximum that are logged when they are reached, and the one below which they may be logged again. */
const WARN_AT = [0.8, 0.95];
const WARN_AGAIN_BELOW = 0.7;
const RESTS_ON_LOST = 'a write that this one rests on may be lost';

/**
 * Makes one batch durable, and applies it to the tables. `decide` runs the transactions that wait, and returns what
 * they change: it is called once, on tables that are up to date, or not at all. Rejects with a StoreError.
 */
export type Commit = (decide: () => Changes) => Promise<void>;

interface Waiting {
  work(tx: Transaction): unknown;
  resolve(result: unknown): void;
  reject(error: unknown): void;
}

/** Answers a transaction that ran, when its batch is durable, or lost. */
type Answer = (lost?: StoreError) => void;

export interface StoreOptions {
  readonly id: string;
  readonly tables: Tables;
  readonly commit: Commit;
  readonly maxBytes?: number;
  readonly log?: Log;
  /** True: refusals because it is full are logged. A command tells of its failure itself. */
  readonly isServing?: boolean;
}

export class GroupCommitStore implements Store {
  readonly id: string;
  readonly read: Reads;
  readonly #options: StoreOptions;
  /** The share of the maximum that was logged last. */
  #warnedAt = 0;
  #waiting: Waiting[] = [];
  #committing: Promise<void> | undefined;
  #isClosed = false;
  readonly #mayWarn = onceAMinute(() => this.now());

  constructor(options: StoreOptions) {
    [this.id, this.read, this.#options] = [options.id, options.tables, options];
    this.#warnIfNearlyFull();
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
    for (;;) {
      await this.#gather();
      if (this.#waiting.length === 0) break;
      const batch: Answer[] = [];
      try {
        await this.#options.commit(() => this.#decide(batch));
        for (const answer of batch) answer();
        this.#warnIfNearlyFull();
      } catch (error) {
        this.#warnIfFull(error);
        if (batch.length === 0) for (const { reject } of this.#waiting.splice(0)) reject(error);
        for (const answer of batch) answer(error as StoreError);
      }
    }
    this.#committing = undefined;
  }

  /** Clients that were answered together write again within a few turns: one batch for them all, and not two. */
  async #gather(): Promise<void> {
    let before = -1;
    for (let turn = 0; turn < MAX_GATHERING_TURNS; turn++) {
      if (this.#waiting.length <= before || this.#waiting.length >= ENOUGH) return;
      before = this.#waiting.length;
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /**
   * Runs the transactions that wait. Those before the first change have seen only durable rows, and are answered at
   * once; the others join the batch.
   */
  #decide(batch: Answer[]): Changes {
    const draft = new Draft(this.#options.tables, this.#options.maxBytes);
    let count = 0;
    for (const { work, resolve, reject } of this.#waiting) {
      if (draft.bytes >= FULL_BATCH_BYTES) break;
      count++;
      let answer: Answer;
      try {
        const result = draft.run(work);
        answer = (lost) => (lost ? reject(lost) : resolve(result));
      } catch (error) {
        this.#warnIfFull(error);
        // What it has thrown may tell of rows that are lost with the batch.
        answer = (lost) => reject(lost ? new StoreError('unavailable', `${RESTS_ON_LOST}: ${lost.message}`) : error);
      }
      if (draft.hasChanges) batch.push(answer);
      else answer();
    }
    this.#waiting.splice(0, count);
    return draft.changes;
  }

  /** Clients get 507. Once a minute. */
  #warnIfFull(error: unknown): void {
    const { log, isServing } = this.#options;
    if (!isServing || !(error instanceof StoreError && error.failure === 'full') || !this.#mayWarn()) return;
    log?.warn(`writes are refused: ${error.message}`);
  }

  #warnIfNearlyFull(): void {
    const { tables, maxBytes = Number.POSITIVE_INFINITY, log } = this.#options;
    const { bytes } = tables;
    const share = WARN_AT.findLast((one) => bytes >= one * maxBytes) ?? 0;
    if (share > this.#warnedAt) {
      const reached = `the store has reached ${share * 100} % of its maximum`;
      log?.warn(`${reached}: at the maximum, what adds to it is refused`, { bytes, maxBytes });
      this.#warnedAt = share;
    } else if (bytes < WARN_AGAIN_BELOW * maxBytes) this.#warnedAt = 0;
  }
}

/** Store time: the wall clock as it is now, but never before `notBefore`; monotonic from here on. */
export function storeTime(clock: Clock, notBefore = 0): () => number {
  const offset = Math.max(clock.wall(), notBefore) - clock.now();
  return () => Math.max(notBefore, Math.floor(clock.now() + offset));
}
