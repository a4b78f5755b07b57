import type { Log } from './log.ts';
import { type Ahead, type Operation, StoreError } from './model.ts';
import { impossible, noRoom, perform } from './operations.ts';
import { aheadOf, Pending } from './pending.ts';
import { type End, encodeEntry, encodeOperation, MAX_RECORD_BYTES } from './record.ts';
import type { State } from './state.ts';

/** What one batch may hold. While one is on its way to the disk the next collects; beyond it, writes are refused. */
export const MAX_BATCH_RECORDS = 4096;
const MAX_BATCH_CHARACTERS = 8 * 1024 * 1024;
/** After so long others have their turn. */
const TAKING_IN_MS = 5;

/** More than `"crc"`, `"seq"`, `"batch"` and `"left"` ever take. */
const PLACE_BYTES = 128;

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
  readonly pending: Pending;
  characters = 0;

  constructor(below: State | Pending) {
    this.pending = new Pending(below);
  }
}

/** What is told: each batch that is durable; and, once, that what is on disk cannot be known. */
interface Listener {
  batch(records: number, bytes: number, ms: number): void;
  unknown(error: StoreError): void;
}

/**
 * Group commit: check against the state as it will be, append, fdatasync, apply to memory, answer. One batch is on
 * its way to the disk, the next collects; batch k + 1 is written only when k is durable, so that a record of k + 1
 * proves that k was.
 */
export class Committer {
  readonly #state: State;
  readonly #listener: Listener;
  readonly #ahead = aheadOf(() => this.#collecting.pending);
  #log: Log;
  #seq: number;
  #batch: number;
  #collecting: Batch;
  #sent: Batch | undefined;
  /** One after the other: batches, and the ends of logs. */
  #turn: Promise<unknown> = Promise.resolve();
  #refusing: StoreError | undefined;
  /** What is on disk cannot be known. */
  #failure: StoreError | undefined;

  constructor(log: Log, { state, seq, batch }: { state: State; seq: number; batch: number }, listener: Listener) {
    this.#log = log;
    this.#state = state;
    this.#seq = seq;
    this.#batch = batch;
    this.#listener = listener;
    this.#collecting = new Batch(state);
  }

  get log(): Log {
    return this.#log;
  }

  write<O extends Operation>(decide: (ahead: Ahead) => O): Promise<O> {
    if (this.#refusing) return Promise.reject(this.#refusing);
    const batch = this.#collecting;
    let operation: O;
    let text: string;
    try {
      operation = decide(this.#ahead);
      const why = impossible(operation, batch.pending);
      if (why !== undefined) throw new Error(`an operation that cannot be: ${why}`);
      text = encodeOperation(operation);
      checkRoom(operation, text, batch);
    } catch (error) {
      return this.#refuse(error);
    }
    perform(operation, batch.pending);
    batch.characters += text.length;
    return new Promise<O>((resolve, reject) => {
      batch.writes.push({ operation, text, resolve: resolve as (operation: Operation) => void, reject });
      if (batch.writes.length === 1) void this.#inTurn(() => this.#commit());
    });
  }

  /** After what was accepted: the log ends with this record, and goes on in `next`, if there is one. */
  end(end: End, next?: Log): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#failure) throw this.#failure;
      if (next && this.#state.imports.size > 0)
        throw new StoreError('busy', 'an import is under way; compact after it');
      try {
        await this.#log.append(Buffer.from(encodeEntry(this.#seq + 1, this.#batch + 1, 0, encodeOperation(end))));
      } catch (error) {
        if ((error as StoreError).failure === 'unknown') this.fail(error as StoreError);
        throw error;
      }
      this.#state.dropExpired(end.at);
      this.#seq++;
      this.#batch++;
      if (!next) return;
      this.#log.close();
      this.#log = next;
    });
  }

  /** Accepts nothing from now on. What was accepted goes on. */
  stop(): void {
    this.#refusing ??= new StoreError('closed', 'the store is closed');
  }

  /**
   * The disk failed, under `batch` or elsewhere. What was decided since rests on what failed: it is refused as well, but
   * was surely not kept. When what is on disk cannot be known, nothing more is accepted.
   */
  fail(error: StoreError, batch?: Batch): void {
    const since = this.#collecting;
    this.#collecting = new Batch(this.#state);
    this.#sent = undefined;
    const isNews = error.failure === 'unknown' && !this.#failure;
    if (isNews) {
      this.#failure = error;
      this.#refusing = new StoreError('closed', `nothing more is kept: ${error.message}`);
    }
    for (const { reject } of batch?.writes ?? []) reject(error);
    const others = [...(batch?.refusals ?? []), ...since.writes, ...since.refusals];
    for (const { reject } of others) reject(isNews ? this.#refusing : error);
    if (isNews) this.#listener.unknown(error);
  }

  #refuse(error: unknown): Promise<never> {
    const batch = this.#collecting.writes.length > 0 ? this.#collecting : this.#sent;
    if (!batch || error instanceof StoreError) return Promise.reject(error);
    if (batch.refusals.length >= MAX_BATCH_RECORDS) {
      return Promise.reject(new StoreError('busy', 'too many refusals are waiting'));
    }
    return new Promise((_, reject) => batch.refusals.push({ reject, error }));
  }

  async #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work);
    this.#turn = done.catch(() => {});
    return done;
  }

  async #commit(): Promise<void> {
    // Not at once: whatever else this turn of the event loop has read from its sockets goes into the same batch.
    await new Promise((resolve) => setImmediate(resolve));
    const batch = this.#collecting;
    const count = batch.writes.length;
    if (count === 0) return; // what was to be written has been refused
    this.#sent = batch;
    this.#collecting = new Batch(batch.pending);
    let text = '';
    for (const [i, write] of batch.writes.entries()) {
      text += encodeEntry(this.#seq + 1 + i, this.#batch + 1, count - 1 - i, write.text);
    }
    const bytes = Buffer.from(text);
    const began = performance.now();
    try {
      await this.#log.append(bytes);
    } catch (error) {
      this.fail(error as StoreError, batch);
      return;
    }
    const ms = performance.now() - began;
    this.#seq += count;
    this.#batch++;
    for (const { operation } of batch.writes) {
      if (operation.op === 'endImport') await this.#takeIn(operation.import, operation.first);
    }
    // In one step: what is decided meanwhile rests on none of the batch, or on all of it.
    for (const { operation } of batch.writes) perform(operation, this.#state);
    this.#collecting.pending.below = this.#state;
    this.#sent = undefined;
    for (const { operation, resolve } of batch.writes) resolve(operation);
    for (const { reject, error } of batch.refusals) reject(error);
    this.#listener.batch(count, bytes.length, ms);
  }

  /** An import may be of any size: reads are answered meanwhile, and writes wait. */
  async #takeIn(name: string, first: number): Promise<void> {
    let began = performance.now();
    for (const _ of this.#state.takeIn(name, first)) {
      if (performance.now() - began < TAKING_IN_MS) continue;
      await new Promise((resolve) => setImmediate(resolve));
      began = performance.now();
    }
  }
}

function checkRoom(operation: Operation, text: string, { pending, writes, characters }: Batch): void {
  // A string's unit takes up to three bytes in UTF-8: only what may be too large is measured.
  if (text.length * 3 + PLACE_BYTES > MAX_RECORD_BYTES && Buffer.byteLength(text) + PLACE_BYTES > MAX_RECORD_BYTES) {
    throw new StoreError('rejected', 'the operation is too large for one record');
  }
  const why = noRoom(operation, pending);
  if (why) throw why;
  if (writes.length >= MAX_BATCH_RECORDS || (characters + text.length > MAX_BATCH_CHARACTERS && writes.length > 0)) {
    throw new StoreError('busy', 'too many writes are waiting');
  }
}
