/**
 * The one store: all content in memory, and every change in a journal first (write-ahead log, group commit). All
 * waiting writes become one batch. The store decides them one after the other on the state ahead, appends their
 * changes to the journal, applies the changes to memory, and answers. Writes that come meanwhile wait, undecided.
 *
 * A start sets store time by the machine's clock. From there it runs on the monotonic clock, so setting the machine's
 * clock has no effect before the next start. If the machine's clock is before the last record, or implausibly far after
 * it, store time goes on from that record. So a clock that is years wrong makes no idempotency record expire, and
 * resets no daily count and no ban. While the service runs the time is recorded once an hour, if nothing else is. The
 * price: if the service stands still for more than a year, the next start sets store time back to the last record, and
 * tells the operator. Idempotency records, daily counts, bans and replaced secrets then end that much later. It is paid
 * once: later starts add to store time what the machine's clock has moved since `LOCK` was last written.
 * With a database, whose clock all replicas share, there is no such gap: store time is never behind that clock.
 */
import { type Clock, DAY_MS, onceAMinute, type TimesSeen } from '../clock.ts';
import { StateAhead } from './ahead.ts';
import { BoundError, inMegabytes } from './bounds.ts';
import { type Ahead, type Change, type Decided, type Journal, type Store, StoreError } from './model.ts';
import { State } from './state.ts';

/** The most writes that wait, and become one batch. Further ones are refused. */
const MAX_WAITING_WRITES = 4096;
/** A batch is gathered for so many turns of the event loop at most. */
const MAX_GATHERING_TURNS = 5;
/** So many writes are worth a sync: others that come meanwhile are read while the disk works. */
const ENOUGH_WRITES = 64;
/** The operator gets a notice when the store reaches these shares of its maximum. */
const FILLING_PERCENT = [80, 90, 99];
/** Once the store has shrunk to this much below one of these shares, reaching the share again gives another notice. */
const WELL_BELOW_PERCENT = 5;
/** A clock that has moved further than this since the last record is taken for wrong. */
const MAX_PLAUSIBLE_GAP_MS = 366 * DAY_MS;
/** A clock that is behind the last record by less than this is no news: clocks are set right by a little. */
const NOTABLE_DELAY_MS = 2 * DAY_MS;

export interface MemoryStoreOptions {
  clock: Clock;
  /** For a clock that all processes share, and that limits are counted by: it is followed however far ahead it is. */
  trustsClock?: boolean;
  /** The times when the store was last seen open; undefined: nobody knows them. */
  timesSeen?: TimesSeen;
  /** Called for each batch of this process when it is durable, before it is applied, and before it is answered. */
  onDurable?: (changes: readonly Change[]) => void;
  /** Called with texts that the operator should read: a bound refuses writes, the store fills up. */
  onNotice?: (text: string) => void;
  /** The most heap that the content may take; without it, any amount. */
  maxBytes?: number;
}

interface Write {
  decide(ahead: Ahead): Decided;
  resolve(decided: Decided): void;
  reject(error: unknown): void;
  /** The outcome: exactly one of these two is set. */
  decided?: Decided;
  refusal?: unknown;
}

export class MemoryStore implements Store {
  readonly read: State;
  readonly maxBytes: number;
  readonly #journal: Journal;
  readonly #clock: Clock;
  readonly #onDurable: MemoryStoreOptions['onDurable'];
  readonly #onNotice: MemoryStoreOptions['onNotice'];
  readonly #mayTell: () => boolean;
  #refusedSince = 0;
  #marksPassed = 0;
  /** Store time when the monotonic clock stood at 0. */
  readonly #origin: number;
  /** Writes for the next batch. */
  #waiting: Write[] = [];
  #committing: Promise<void> | undefined;
  #isClosed = false;

  static async open(journal: Journal, options: MemoryStoreOptions): Promise<MemoryStore> {
    const state = new State();
    await journal.replay(state);
    journal.follow?.((changes) => state.apply(changes));
    return new MemoryStore(journal, state, options);
  }

  private constructor(journal: Journal, state: State, options: MemoryStoreOptions) {
    const { clock, onDurable, onNotice, maxBytes = Number.POSITIVE_INFINITY } = options;
    this.read = state;
    this.maxBytes = maxBytes;
    this.#journal = journal;
    this.#clock = clock;
    this.#onDurable = onDurable;
    this.#onNotice = onNotice;
    this.#mayTell = onceAMinute(() => clock.now());
    this.#origin = this.#startingTime(options) - clock.now();
    this.#noticeFilling();
  }

  #startingTime({ trustsClock, timesSeen }: MemoryStoreOptions): number {
    const [wall, last] = [this.#clock.wall(), this.read.time];
    const gap = wall - last;
    const isPlausible = (ms: number) => ms >= 0 && (trustsClock || ms <= MAX_PLAUSIBLE_GAP_MS);
    if (last === 0 || isPlausible(gap)) return wall;
    const passed = timesSeen && wall - timesSeen.wall;
    const counts = passed !== undefined && isPlausible(passed);
    const days = Math.round(Math.abs(gap) / DAY_MS);
    const where = `${days} days ${gap < 0 ? 'before' : 'after'} the last record of the store`;
    const goesOn = `time goes on from that record${counts ? ', by what the clock has moved since the last run' : ''}`;
    if (gap > 0 || -gap >= NOTABLE_DELAY_MS) this.#onNotice?.(`the clock is ${where}: ${goesOn}`);
    return counts ? Math.max(last, timesSeen!.at + passed) : last;
  }

  unix(): number {
    return Math.floor(this.#origin + this.#clock.now());
  }

  write<D extends Decided>(decide: (ahead: Ahead) => D): Promise<D> {
    return new Promise<D>((resolve, reject) => {
      const isFull = this.#waiting.length >= MAX_WAITING_WRITES;
      if (this.#isClosed) reject(new StoreError('closed', 'the store is closed'));
      else if (isFull) reject(new StoreError('busy', 'too many writes are waiting'));
      else {
        this.#waiting.push({ decide, resolve: resolve as Write['resolve'], reject });
        this.#committing ??= this.#commit();
      }
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#committing;
    await this.#journal.close();
  }

  async #commit(): Promise<void> {
    for (;;) {
      await this.#gather();
      if (this.#waiting.length === 0) break;
      const batch = this.#waiting;
      this.#waiting = [];
      if (!(await this.#keep(batch))) continue;
      for (const { decided, refusal, resolve, reject } of batch) decided ? resolve(decided) : reject(refusal);
    }
    this.#committing = undefined;
  }

  /**
   * Waits while each turn of the event loop reads more writes from sockets. Clients that were answered together write
   * again within a few turns. If the first of them made a batch of their own, they would pay a write and a sync, and
   * the others would wait for it. A single client waits one turn more, in which there is nothing to do.
   */
  async #gather(): Promise<void> {
    let before = -1;
    for (let turn = 0; turn < MAX_GATHERING_TURNS; turn++) {
      if (this.#waiting.length <= before || this.#waiting.length >= ENOUGH_WRITES) return;
      before = this.#waiting.length;
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /**
   * True if the batch is durable; otherwise its callers were rejected. If another process was first, the batch is
   * decided again on top of that process's changes. No code catches a throw of `apply`: it is a bug that makes
   * memory differ from the durable state, so the process ends.
   */
  async #keep(batch: Write[]): Promise<boolean> {
    for (;;) {
      const ahead = new StateAhead(this.read, this.maxBytes);
      const changes = decideOn(ahead, batch);
      for (const { refusal } of batch) if (refusal instanceof BoundError) this.#noticeRefusal(refusal);
      if (changes.length === 0) return true;
      let others: Change[] | undefined;
      try {
        others = await this.#journal.append(changes);
      } catch (error) {
        refuse(batch, error as StoreError);
        return false;
      }
      if (others === undefined) this.#onDurable?.(changes);
      this.read.apply(others ?? changes);
      if (others === undefined) ahead.checkAgainst(this.read);
      this.#noticeFilling();
      if (others === undefined) return true;
    }
  }

  /** Gives a notice well before the store is full; only one if the store grows and shrinks around one of the shares. */
  #noticeFilling(): void {
    const percent = Math.floor((100 * this.read.bytes.total) / this.maxBytes);
    const passedAt = (share: number) => FILLING_PERCENT.filter((one) => one <= share).length;
    const isMore = passedAt(percent) > this.#marksPassed;
    this.#marksPassed = isMore
      ? passedAt(percent)
      : Math.min(this.#marksPassed, passedAt(percent + WELL_BELOW_PERCENT));
    if (!isMore) return;
    const maximum = `its maximum of ${inMegabytes(this.maxBytes)} (--max-store-mb)`;
    this.#onNotice?.(`the store takes ${percent} % of ${maximum}; at 100 % it refuses writes that make it larger`);
  }

  #noticeRefusal({ message, about }: BoundError): void {
    this.#refusedSince++;
    if (!this.#mayTell()) return;
    const whose = about.caller === undefined ? '' : ` (${about.caller})`;
    this.#onNotice?.(`a write was refused: ${message}${whose}; ${this.#refusedSince} since the last such notice`);
    this.#refusedSince = 0;
  }
}

/** Decides the writes one after the other, each on top of those before it. Gives the changes to append. */
function decideOn(ahead: StateAhead, batch: Write[]): Change[] {
  const changes: Change[] = [];
  for (const write of batch) {
    write.decided = write.refusal = undefined;
    try {
      const decided = write.decide(ahead);
      if (decided.op !== 'again') {
        ahead.apply(decided);
        changes.push(decided);
      }
      write.decided = decided;
    } catch (error) {
      write.refusal = error;
    }
  }
  return changes;
}

/**
 * Rejects a batch that could not be appended. Where its changes get `unknown`, its refused and repeated writes get
 * `unavailable` (certainly not kept), for they have changed nothing.
 */
function refuse(batch: Write[], error: StoreError): void {
  const why = `an earlier write that this one rests on may not be kept: ${error.message}`;
  const notKept = error.failure === 'unknown' ? new StoreError('unavailable', why) : error;
  for (const { decided, reject } of batch) reject(decided && decided.op !== 'again' ? error : notKept);
}
