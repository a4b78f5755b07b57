import type { Clock } from '../clock.ts';
import { StateAhead } from './ahead.ts';
import {
  type Ahead,
  type Decided,
  type Journal,
  type Operation,
  type Proof,
  type Reading,
  type Store,
  StoreError,
} from './model.ts';
import { encode, prove } from './record.ts';
import { State } from './state.ts';

/** What one batch may hold: writes, an animal of an import counted as one. Beyond it, writes are refused. */
const MAX_BATCH_WRITES = 4096;
/** The longest operation: as much as a line of a file holds. */
const MAX_OPERATION_BYTES = 4 * 1024 * 1024 - 256;
/** A clock that has moved further than this since the last record is wrong. */
const MAX_PLAUSIBLE_GAP_MS = 30 * 24 * 60 * 60 * 1000;

interface Write {
  decide(ahead: Ahead): Decided;
  resolve(decided: Decided): void;
  reject(error: unknown): void;
  /** What it came to, as of now. */
  decided?: Decided;
  refusal?: { error: unknown };
}

/**
 * Operations that become durable together; and every write that made one of them, or was answered with them in sight.
 */
class Batch {
  readonly writes: Write[] = [];
  readonly operations: Operation[] = [];
  weight = 0;
}

/**
 * The one store: everything in memory, every change in a journal first. Group commit: decide on the state as it will
 * be, append, apply to memory, answer. One batch is on its way to the journal, the next collects.
 *
 * Store time begins where the machine's clock stands, and runs on the monotonic one: who sets the machine's clock moves
 * it at no time but a start. Then too it does not follow a clock that stands before the last record, or implausibly far
 * behind it: it goes on from that record. So a clock that is years wrong makes no idempotency record expire, and gives
 * back no day's count and no ban. The price: after standing still for more than 30 days, records are kept longer.
 */
export class MemoryStore implements Store {
  readonly read: Reading;
  readonly #state: State;
  readonly #journal: Journal;
  readonly #clock: Clock;
  /** Store time when the monotonic clock stood at 0. */
  readonly #origin: number;
  #ahead: StateAhead;
  #collecting = new Batch();
  #sent: Batch | undefined;
  /** Behind an operation whose effects only the state itself shows (`fill`, `advance`), writes wait undecided. */
  #undecided: Write[] | undefined;
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
    this.#state = state;
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
      const write: Write = { decide, resolve: resolve as Write['resolve'], reject };
      if (this.#isClosed) reject(new StoreError('closed', 'the store is closed'));
      else if (this.#isFull()) reject(new StoreError('busy', 'too many writes are waiting'));
      else this.#accept(write);
    });
  }

  /** Throws where the state contradicts itself; else tells what is in it. */
  check(): Proof {
    this.#state.check();
    return prove(this.#state);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#committing;
    await this.#journal.close();
  }

  #isFull(): boolean {
    const waiting = this.#collecting.writes.length + (this.#sent?.writes.length ?? 0) + (this.#undecided?.length ?? 0);
    return this.#collecting.weight >= MAX_BATCH_WRITES || waiting >= 2 * MAX_BATCH_WRITES;
  }

  #accept(write: Write): void {
    if (this.#undecided) {
      this.#undecided.push(write);
      return;
    }
    write.decided = undefined;
    write.refusal = undefined;
    try {
      write.decided = write.decide(this.#ahead);
      if (write.decided.op === 'again') this.#answerAfterOthers(write);
      else this.#collect(write, write.decided);
    } catch (error) {
      write.refusal = { error };
      if (error instanceof StoreError) answer(write);
      else this.#answerAfterOthers(write);
    }
  }

  /** What it rests on may not be durable yet. */
  #answerAfterOthers(write: Write): void {
    const restsOn = this.#collecting.operations.length > 0 ? this.#collecting : this.#sent;
    if (restsOn) restsOn.writes.push(write);
    else answer(write);
  }

  #collect(write: Write, operation: Operation): void {
    const isLong = 'pets' in operation || 'entries' in operation;
    if (isLong && Buffer.byteLength(encode(operation)) > MAX_OPERATION_BYTES) {
      throw new StoreError('rejected', 'the operation is too large for one record');
    }
    this.#ahead.take(operation);
    if (operation.op === 'fill' || operation.op === 'advance') this.#undecided = [];
    this.#collecting.operations.push(operation);
    this.#collecting.writes.push(write);
    this.#collecting.weight += operation.op === 'addPets' ? operation.pets.length : 1;
    this.#committing ??= this.#commit();
  }

  async #commit(): Promise<void> {
    for (;;) {
      // Not at once: whatever else this turn of the event loop has read from its sockets goes into the same batch.
      await new Promise((resolve) => setImmediate(resolve));
      const batch = this.#collecting;
      if (batch.operations.length === 0) break;
      this.#sent = batch;
      this.#collecting = new Batch();
      this.#ahead.send();
      await this.#journal.append(batch.operations).then(
        (others) => (others === undefined ? this.#apply(batch) : this.#decideAgain(others)),
        (error) => this.#fail(batch, error),
      );
    }
    this.#committing = undefined;
  }

  #apply(batch: Batch): void {
    this.#state.take(batch.operations);
    this.#ahead.settle();
    this.#sent = undefined;
    for (const write of batch.writes) answer(write);
    if (this.#undecided && this.#collecting.operations.length === 0) this.#decideOn([]);
  }

  /** Others were first: on what they have written, all that was accepted is decided again. */
  #decideAgain(others: Operation[]): void {
    this.#state.take(others);
    this.#decideOn([...(this.#sent?.writes ?? []), ...this.#collecting.writes]);
  }

  /**
   * The append that is under way will fail on what others have written; until then what is decided rests on nothing.
   */
  #follow(operations: Operation[]): void {
    if (this.#sent) this.#state.take(operations);
    else this.#decideAgain(operations);
  }

  /** Begins anew on the state as it is. */
  #decideOn(writes: Write[]): void {
    const all = [...writes, ...(this.#undecided ?? [])];
    this.#ahead = new StateAhead(this.#state);
    this.#sent = undefined;
    this.#collecting = new Batch();
    this.#undecided = undefined;
    for (const write of all) this.#accept(write);
  }

  /** What was decided since rests on what failed, and goes with it. */
  #fail(batch: Batch, error: StoreError): void {
    const since = [...this.#collecting.writes, ...(this.#undecided ?? [])];
    this.#undecided = undefined;
    this.#collecting = new Batch();
    this.#decideOn([]);
    const isUnknown = error.failure === 'unknown';
    const notKept = isUnknown
      ? new StoreError('unavailable', `what this rests on may not be kept: ${error.message}`)
      : error;
    for (const write of batch.writes) write.reject(isOperation(write) ? error : notKept);
    for (const { reject } of since) reject(notKept);
  }
}

const isOperation = ({ decided }: Write): boolean => decided !== undefined && decided.op !== 'again';

function answer({ decided, refusal, resolve, reject }: Write): void {
  if (refusal) reject(refusal.error);
  else resolve(decided!);
}
