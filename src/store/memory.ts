/**
 * The one store: everything in memory, every change in a journal first. Group commit: decide on the state as it will
 * be, append, apply to memory, answer. One batch is on its way to the journal, the next collects.
 *
 * Store time begins where the machine's clock stands, and runs on the monotonic one: who sets the machine's clock moves
 * it at no time but a start. Then too it does not follow a clock that stands before the last record, or implausibly far
 * behind it: it goes on from that record. So a clock that is years wrong makes no idempotency record expire, and gives
 * back no day's count and no ban. The price: after standing still for more than 30 days, records are kept longer.
 */
import type { Clock } from '../clock.ts';
import { StateAhead } from './ahead.ts';
import { type Ahead, type Decided, type Journal, type Operation, type Store, StoreError } from './model.ts';
import { State } from './state.ts';

/** What one batch may hold: writes, an animal of an import counted as one. Beyond it, writes are refused. */
const MAX_BATCH_WRITES = 4096;
/** A clock that has moved further than this since the last record is wrong. */
const MAX_PLAUSIBLE_GAP_MS = 30 * 24 * 60 * 60 * 1000;

interface Write {
  decide(ahead: Ahead): Decided;
  resolve(decided: Decided): void;
  reject(error: unknown): void;
  /** What it came to, as of now: a refusal, or a decision; `operation` where that is something to be written. */
  decided?: Decided;
  operation?: Operation;
  refusal?: unknown;
}

export class MemoryStore implements Store {
  readonly read: State;
  readonly #journal: Journal;
  readonly #clock: Clock;
  /** Store time when the monotonic clock stood at 0. */
  readonly #origin: number;
  #ahead: StateAhead;
  /** The next batch, and the one on its way: operations, and answers that rest on an operation before them. */
  #collecting: Write[] = [];
  #sent: Write[] = [];
  /** Of what collects: operations, an animal of an import counted as one. */
  #weight = 0;
  #committing: Promise<void> | undefined;
  #isClosed = false;

  static async open(journal: Journal, { clock }: { clock: Clock }): Promise<MemoryStore> {
    const state = new State();
    await journal.replay(state);
    const store = new MemoryStore(journal, state, clock);
    journal.follow?.((operations) => store.#follow(operations));
    return store;
  }

  private constructor(journal: Journal, state: State, clock: Clock) {
    this.read = state;
    this.#journal = journal;
    this.#clock = clock;
    const wall = clock.wall();
    const isPlausible = state.time === 0 || (wall >= state.time && wall <= state.time + MAX_PLAUSIBLE_GAP_MS);
    this.#origin = (isPlausible ? wall : state.time) - clock.now();
    this.#ahead = new StateAhead(state);
  }

  unix(): number {
    return Math.floor(this.#origin + this.#clock.now());
  }

  write<D extends Decided>(decide: (ahead: Ahead) => D): Promise<D> {
    return new Promise<D>((resolve, reject) => {
      const waiting = this.#collecting.length + this.#sent.length;
      const isFull = this.#weight >= MAX_BATCH_WRITES || waiting >= 2 * MAX_BATCH_WRITES;
      if (this.#isClosed) reject(new StoreError('closed', 'the store is closed'));
      else if (isFull) reject(new StoreError('busy', 'too many writes are waiting'));
      else this.#accept({ decide, resolve: resolve as Write['resolve'], reject });
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#committing;
    await this.#journal.close();
  }

  #accept(write: Write): void {
    write.decided = write.operation = write.refusal = undefined;
    try {
      const decided = write.decide(this.#ahead);
      if (decided.op !== 'again') {
        this.#ahead.apply(decided);
        write.operation = decided;
      }
      write.decided = decided;
    } catch (error) {
      write.refusal = error;
    }
    const { operation, refusal } = write;
    // What an answer rests on may not be durable yet.
    const batch = operation || this.#collecting.length > 0 ? this.#collecting : this.#sent;
    if (!operation && (refusal instanceof StoreError || batch.length === 0)) answer(write);
    else batch.push(write);
    if (!operation) return;
    this.#weight += operation.op === 'pets' ? operation.statuses.length : 1;
    this.#committing ??= this.#commit();
  }

  async #commit(): Promise<void> {
    for (;;) {
      // Not at once: whatever else this turn of the event loop has read from its sockets goes into the same batch.
      await new Promise((resolve) => setImmediate(resolve));
      if (this.#collecting.length === 0) break;
      const operations = operationsOf(this.#collecting);
      this.#sent = this.#collecting;
      this.#collecting = [];
      this.#weight = 0;
      await this.#journal.append(operations).then(
        (others) => (others === undefined ? this.#apply(operations) : this.#decideAgain(others)),
        (error) => this.#fail(error),
      );
    }
    this.#committing = undefined;
  }

  #apply(operations: Operation[]): void {
    this.read.apply(operations);
    this.#ahead = new StateAhead(this.read, operationsOf(this.#collecting));
    for (const write of this.#sent.splice(0)) answer(write);
  }

  /** Others were first: on what they have written, all that was accepted is decided again. */
  #decideAgain(others: Operation[]): void {
    this.read.apply(others);
    for (const write of this.#beginAnew()) this.#accept(write);
  }

  /** An append that is under way will find that others were first: then all is decided again, not now. */
  #follow(operations: Operation[]): void {
    if (this.#sent.length > 0) this.read.apply(operations);
    else this.#decideAgain(operations);
  }

  /** On the state as it is. Gives what was accepted and not answered. */
  #beginAnew(): Write[] {
    const writes = [...this.#sent, ...this.#collecting];
    this.#ahead = new StateAhead(this.read);
    this.#sent = [];
    this.#collecting = [];
    this.#weight = 0;
    return writes;
  }

  /** What was decided since rests on what failed, and goes with it. */
  #fail(error: StoreError): void {
    const failed = new Set(this.#sent);
    const why = `what this rests on may not be kept: ${error.message}`;
    const notKept = error.failure === 'unknown' ? new StoreError('unavailable', why) : error;
    for (const write of this.#beginAnew()) write.reject(write.operation && failed.has(write) ? error : notKept);
  }
}

function answer({ decided, refusal, resolve, reject }: Write): void {
  if (decided) resolve(decided);
  else reject(refusal);
}

/** Not by flatMap, which takes ten times as long. */
function operationsOf(writes: Write[]): Operation[] {
  const operations: Operation[] = [];
  for (const { operation } of writes) if (operation !== undefined) operations.push(operation);
  return operations;
}
