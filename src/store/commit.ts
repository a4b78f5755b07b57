import type { AheadView } from './ahead.ts';
import { MAX_CATEGORIES } from './categories.ts';
import { MAX_KEYS } from './keys.ts';
import type { Log } from './log.ts';
import { type Ahead, type Operation, StoreError } from './model.ts';
import { MAX_ONCE_RECORDS } from './onces.ts';
import { type End, encodeEntry, encodeOperation, MAX_RECORD_BYTES } from './record.ts';
import { impossible } from './rules.ts';
import type { Position } from './snapshot.ts';
import type { State } from './state.ts';

/** What one batch may hold. While one is on its way to the disk the next collects; beyond it, writes are refused. */
export const MAX_BATCH_RECORDS = 4096;
const MAX_BATCH_BYTES = 8 * 1024 * 1024;

/** More than `"crc"`, `"seq"`, `"batch"` and `"left"` ever take. */
const PLACE_BYTES = 128;

/** Told after each batch, for the metrics. */
export interface Observer {
  batch(records: number, bytes: number, ms: number): void;
}

interface Waiting {
  operation: Operation;
  text: string;
  resolve(operation: Operation): void;
  reject(error: unknown): void;
}

class Batch {
  readonly writes: Waiting[] = [];
  /** Refusals that rest on what is in this batch: given when it is durable. */
  readonly refusals: { reject(error: unknown): void; error: unknown }[] = [];
  bytes = 0;
}

/**
 * Group commit: check against the state as it will be, append, fdatasync, apply to memory, answer. One batch is on
 * its way to the disk, the next collects; batch k + 1 is written only when k is durable, so that a record of k + 1
 * proves that k was.
 */
export class Committer {
  readonly #state: State;
  readonly #ahead: AheadView;
  readonly #position: Position;
  readonly #onUnknown: (error: StoreError) => void;
  readonly #observer: Observer | undefined;
  #log: Log;
  #collecting = new Batch();
  #sent: Batch | undefined;
  /** Work to be done between two batches. */
  #between: (() => Promise<void>)[] = [];
  #isRunning = false;
  #refusing: StoreError | undefined;
  /** What is on disk cannot be known. */
  #failure: StoreError | undefined;

  constructor(
    log: Log,
    state: State,
    ahead: AheadView,
    position: Position,
    onUnknown: (error: StoreError) => void,
    observer?: Observer,
  ) {
    this.#log = log;
    this.#state = state;
    this.#ahead = ahead;
    this.#position = position;
    this.#onUnknown = onUnknown;
    this.#observer = observer;
  }

  get log(): Log {
    return this.#log;
  }

  write<O extends Operation>(decide: (ahead: Ahead) => O): Promise<O> {
    if (this.#refusing) return Promise.reject(this.#refusing);
    let operation: O;
    let text: string;
    try {
      operation = decide(this.#ahead);
      const why = impossible(this.#ahead, operation);
      if (why !== undefined) throw new Error(`an operation that cannot be: ${why}`);
      text = encodeOperation(operation);
      this.#checkRoom(operation, text);
    } catch (error) {
      return this.#refuse(error);
    }
    this.#ahead.add(operation);
    this.#collecting.bytes += text.length;
    return new Promise<O>((resolve, reject) => {
      this.#collecting.writes.push({ operation, text, resolve: resolve as (operation: Operation) => void, reject });
      this.#start();
    });
  }

  /** Runs `work` while no batch is under way; what is collected waits for it. */
  between<T>(work: () => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#between.push(() => work().then(resolve, reject));
      this.#start();
    });
  }

  /** Only between two batches: the log ends here, and goes on in `next`, if there is one. */
  async end(end: End, next?: Log): Promise<void> {
    const { seq, batch } = this.#position;
    try {
      await this.#log.append(Buffer.from(encodeEntry(seq + 1, batch + 1, 0, encodeOperation(end))));
    } catch (error) {
      if ((error as StoreError).failure === 'unknown') this.fail(error as StoreError);
      throw error;
    }
    this.#state.onces.dropExpired(end.at);
    this.#position.seq++;
    this.#position.batch++;
    this.#log.close();
    if (next) this.#log = next;
  }

  /** The disk failed elsewhere than in a batch: nothing more is accepted. */
  fail(error: StoreError): void {
    this.#failed(new Batch(), error);
  }

  /** Accepts nothing from now on. What was accepted goes on. */
  stop(): void {
    this.#refusing ??= new StoreError('closed', 'the store is closed');
  }

  /**
   * After `stop`: what was accepted is made durable, and the log closed. Whether its closing record found room: without
   * it all is durable too, but the next start writes a new generation. Rejects when it cannot be known what is on disk.
   */
  close(end: End): Promise<boolean> {
    return this.between(async () => {
      if (this.#collecting.writes.length > 0) await this.#commit();
      try {
        if (this.#failure) throw this.#failure;
        await this.end(end);
        return true;
      } catch (error) {
        this.#log.close();
        if ((error as StoreError).failure !== 'full') throw error;
        return false;
      }
    });
  }

  #checkRoom(operation: Operation, text: string): void {
    // A string's unit takes up to three bytes in UTF-8: only what may be too large is measured.
    if (text.length * 3 + PLACE_BYTES > MAX_RECORD_BYTES && Buffer.byteLength(text) + PLACE_BYTES > MAX_RECORD_BYTES) {
      throw new StoreError('rejected', 'the operation is too large for one record');
    }
    const ahead = this.#ahead;
    if ('once' in operation && operation.once && ahead.onceCount() >= MAX_ONCE_RECORDS) {
      throw new StoreError('busy', 'there are too many idempotency records; old ones expire after 24 hours');
    }
    if (operation.op === 'setCategory' && ahead.categoryCount() >= MAX_CATEGORIES) {
      if (!ahead.category(operation.category.id)) throw new StoreError('full', 'there are too many categories');
    }
    if (operation.op === 'setKey' && operation.key.slot >= MAX_KEYS) throw new StoreError('full', 'too many keys');
    const { writes, bytes } = this.#collecting;
    if (writes.length >= MAX_BATCH_RECORDS || (bytes + text.length > MAX_BATCH_BYTES && writes.length > 0)) {
      throw new StoreError('busy', 'too many writes are waiting');
    }
  }

  #refuse(error: unknown): Promise<never> {
    const batch = this.#collecting.writes.length > 0 ? this.#collecting : this.#sent;
    if (!batch || error instanceof StoreError) return Promise.reject(error);
    if (batch.refusals.length >= MAX_BATCH_RECORDS) {
      return Promise.reject(new StoreError('busy', 'too many refusals are waiting'));
    }
    return new Promise((_, reject) => batch.refusals.push({ reject, error }));
  }

  #start(): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    // Not at once: whatever else this turn of the event loop has read from its sockets goes into the same batch.
    setImmediate(() => this.#run());
  }

  async #run(): Promise<void> {
    for (;;) {
      const work = this.#between.shift();
      if (work) await work();
      else if (this.#collecting.writes.length > 0) await this.#commit();
      else break;
      await new Promise((resolve) => setImmediate(resolve));
    }
    this.#isRunning = false;
  }

  async #commit(): Promise<void> {
    const batch = this.#collecting;
    this.#sent = batch;
    this.#collecting = new Batch();
    this.#ahead.send();
    const { seq, batch: number } = this.#position;
    const count = batch.writes.length;
    let text = '';
    for (let i = 0; i < count; i++) text += encodeEntry(seq + 1 + i, number + 1, count - 1 - i, batch.writes[i].text);
    const bytes = Buffer.from(text);
    const began = performance.now();
    try {
      await this.#log.append(bytes);
    } catch (error) {
      this.#failed(batch, error as StoreError);
      return;
    }
    const ms = performance.now() - began;
    this.#position.seq += count;
    this.#position.batch++;
    for (const { operation } of batch.writes) this.#state.apply(operation);
    this.#ahead.settle();
    this.#sent = undefined;
    for (const { operation, resolve } of batch.writes) resolve(operation);
    for (const { reject, error } of batch.refusals) reject(error);
    this.#observer?.batch(count, bytes.length, ms);
  }

  /** What was decided since rests on what failed: it is refused as well, but was surely not kept. */
  #failed(batch: Batch, error: StoreError): void {
    const queued = this.#collecting;
    this.#collecting = new Batch();
    this.#sent = undefined;
    this.#ahead.clear();
    const isNews = error.failure === 'unknown' && !this.#failure;
    if (isNews) {
      this.#failure = error;
      this.#refusing = new StoreError('closed', `nothing more is kept: ${error.message}`);
    }
    for (const { reject } of batch.writes) reject(error);
    const others = [...batch.refusals, ...queued.writes, ...queued.refusals];
    for (const { reject } of others) reject(isNews ? this.#refusing : error);
    if (isNews) this.#onUnknown(error);
  }
}
