/** The compactions of a store: one runs at a time, each is counted, and none begins while the store is being closed. */
import { StoreError } from '../model.ts';

const NOT_DONE = new StoreError('closed', "the store's process is being stopped, and the compaction was not done");

export class Compactions {
  /** The compactions done and failed, and the time that those done have taken. */
  readonly counts = { done: 0, failed: 0, ms: 0 };
  underWay: Promise<void> | undefined;
  readonly #work: (signal: AbortSignal) => Promise<void>;
  readonly #closing = new AbortController();

  constructor(work: (signal: AbortSignal) => Promise<void>) {
    this.#work = work;
  }

  get areOver(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Starts a compaction, or waits for the one under way. */
  run(): Promise<void> {
    return (this.underWay ??= this.#run().finally(() => void (this.underWay = undefined)));
  }

  /** Aborts the compaction under way, and begins no other. */
  giveUp(): void {
    this.#closing.abort();
  }

  async #run(): Promise<void> {
    const began = performance.now();
    try {
      this.#closing.signal.throwIfAborted();
      await this.#work(this.#closing.signal);
    } catch (error) {
      if (this.areOver) throw NOT_DONE;
      this.counts.failed++;
      throw error;
    }
    this.counts.done++;
    this.counts.ms += performance.now() - began;
  }
}
