/**
 * The limiter of all threads together: the same decisions on rows in shared memory, one thread at a time in each row.
 * Whoever holds a lock takes no other, so nobody waits in a circle.
 */
import { BEFORE, NOBODY, ROW, SlotLimiter } from '../access/limiter.ts';
import type { Decision, Limited, LimiterOptions } from '../access/limits.ts';
import { steadyOffset } from '../access/wall.ts';
import { BANS, LOCKS, lock, type Memory, NEWEST_CHANGED, NUMBER_BYTES, unlock } from './memory.ts';

/** All but `take`. They come seldom: a closure is nothing to them. */
const OTHERS = ['look', 'lift', 'restore', 'counted', 'advance', 'refill'] as const;

export class SharedLimiter extends SlotLimiter {
  readonly #words: Int32Array;
  readonly #buffer: SharedArrayBuffer;

  constructor(options: LimiterOptions, memory: Memory) {
    const wallOffset = steadyOffset(() => options.clock.wall(), memory.wallOffset);
    super({ ...options, shared: { rows: rowsOf(memory.rows), wallOffset } });
    this.#words = memory.words;
    this.#buffer = memory.rows;
    for (const name of OTHERS) {
      const work = this[name] as (caller: Limited, ...more: unknown[]) => unknown;
      const alone = (caller: Limited, ...more: unknown[]) =>
        this.#alone(caller.slot, () => work.call(this, caller, ...more));
      Object.defineProperty(this, name, { value: alone });
    }
  }

  override take(caller: Limited): Decision {
    const number = caller.slot % LOCKS;
    lock(this.#words, number);
    try {
      return super.take(caller);
    } finally {
      unlock(this.#words, number);
    }
  }

  /**
   * Only one thread may call it: then what is first in the list stays in it until it is taken out here. A caller is
   * clean again before it is counted, so whoever takes a token in between puts it into the list once more.
   */
  override changed(max: number): number[] {
    const slots: number[] = [];
    for (let first: number; slots.length < max && (first = Atomics.load(this.#words, NEWEST_CHANGED)) !== NOBODY; ) {
      const slot = first - 1;
      this.#alone(slot, () => {
        const at = this.rowOf({ slot }) + BEFORE;
        if (Atomics.compareExchange(this.#words, NEWEST_CHANGED, first, this.rows[at]) !== first) return;
        this.rows[at] = 0;
        slots.push(slot);
      });
    }
    return slots;
  }

  override unsaved(slots: Iterable<number>): void {
    for (const slot of slots) this.#alone(slot, () => this.markChanged(slot, this.rowOf({ slot })));
  }

  /** To be called with the caller's lock in hand. */
  protected override markChanged(slot: number, row: number): void {
    if (this.rows[row + BEFORE] !== 0) return;
    let first: number;
    do {
      first = Atomics.load(this.#words, NEWEST_CHANGED);
      this.rows[row + BEFORE] = first;
    } while (Atomics.compareExchange(this.#words, NEWEST_CHANGED, first, slot + 1) !== first);
  }

  override get bansBegun(): number {
    return Atomics.load(this.#words, BANS);
  }

  protected override countBan(): void {
    Atomics.add(this.#words, BANS, 1);
  }

  /** No row moves, so others go on counting; whoever meets a caller beyond its view makes itself a longer one. */
  protected override grow(slots: number): void {
    const buffer = this.#buffer as SharedArrayBuffer & { grow(bytes: number): void };
    const bytes = slots * ROW * NUMBER_BYTES;
    try {
      buffer.grow(bytes);
    } catch (error) {
      if (buffer.byteLength < bytes) throw error; // else another thread was first, and needed more
    }
    this.rows = rowsOf(buffer);
  }

  #alone<R>(slot: number, work: () => R): R {
    const number = slot % LOCKS;
    lock(this.#words, number);
    try {
      return work();
    } finally {
      unlock(this.#words, number);
    }
  }
}

/** Of a fixed length: a view that follows its buffer is slower. */
const rowsOf = (buffer: SharedArrayBuffer) => new Float64Array(buffer, 0, buffer.byteLength / NUMBER_BYTES);
