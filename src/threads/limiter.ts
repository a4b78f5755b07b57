/**
 * The limiter of all threads together: the same decisions on rows in shared memory, one thread at a time in each row.
 * Whoever holds a lock takes no other, so nobody waits in a circle.
 */
import { BEFORE, NOBODY, ROW, SlotLimiter, type SlotLimiterOptions } from '../access/limiter.ts';
import type { Decision, Limited, Looked } from '../access/limits.ts';
import { steadyOffset } from '../access/wall.ts';
import { BANS, LOCKS, lock, type Memory, NEWEST_CHANGED, unlock } from './memory.ts';

/** Whoever only reads an end, or waits for one, is told the same by every thread. */
function commonOffset(wall: () => number, { wallOffset }: Memory): (at: number) => number {
  return steadyOffset(wall, {
    get offset() {
      return Number(Atomics.load(wallOffset, 0));
    },
    set offset(ms: number) {
      Atomics.store(wallOffset, 0, BigInt(Math.round(ms)));
    },
  });
}

export class SharedLimiter extends SlotLimiter {
  readonly #words: Int32Array;
  readonly #buffer: SharedArrayBuffer;

  constructor(options: SlotLimiterOptions, memory: Memory) {
    const wallOffset = commonOffset(() => options.clock.wall(), memory);
    super({ ...options, shared: { rows: rowsOf(memory.rows), wallOffset } });
    this.#words = memory.words;
    this.#buffer = memory.rows;
    Atomics.compareExchange(this.#words, NEWEST_CHANGED, 0, NOBODY);
  }

  /** On the way of every request: no closure is made. */
  override take(caller: Limited): Decision {
    const number = caller.slot % LOCKS;
    lock(this.#words, number);
    try {
      return super.take(caller);
    } finally {
      unlock(this.#words, number);
    }
  }

  override look(caller: Limited): Looked {
    return this.#alone(caller.slot, () => super.look(caller));
  }

  override lift(caller: Limited): void {
    this.#alone(caller.slot, () => super.lift(caller));
  }

  override restore(caller: Limited, counted: ReturnType<SlotLimiter['counted']>): void {
    this.#alone(caller.slot, () => super.restore(caller, counted));
  }

  override counted(caller: Limited): ReturnType<SlotLimiter['counted']> {
    return this.#alone(caller.slot, () => super.counted(caller));
  }

  override advance(caller: Limited, ms: number): void {
    this.#alone(caller.slot, () => super.advance(caller, ms));
  }

  override refill(caller: Limited): void {
    this.#alone(caller.slot, () => super.refill(caller));
  }

  /**
   * For one thread alone: then what is first in the list stays in it until it is taken out here. A caller is marked as
   * clean before it is counted, so whoever takes a token in between puts it into the list again.
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
    for (const slot of slots) this.#alone(slot, () => this.note(slot, this.rowOf({ slot })));
  }

  /** To be called with the caller's lock in hand. */
  protected override note(slot: number, row: number): void {
    const { rows } = this;
    if (rows[row + BEFORE] !== 0) return;
    let first: number;
    do {
      first = Atomics.load(this.#words, NEWEST_CHANGED);
      rows[row + BEFORE] = first;
    } while (Atomics.compareExchange(this.#words, NEWEST_CHANGED, first, slot + 1) !== first);
  }

  protected override countBan(): void {
    Atomics.add(this.#words, BANS, 1);
  }

  override get bans(): number {
    return Atomics.load(this.#words, BANS);
  }

  /** The rows stay where they are, so others go on counting; whoever meets a caller beyond its view makes a longer one. */
  protected override grow(slots: number): void {
    const bytes = slots * ROW * Float64Array.BYTES_PER_ELEMENT;
    const buffer = this.#buffer as SharedArrayBuffer & { grow(bytes: number): void };
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

/** Of a fixed length: a view that follows the buffer is slower. */
function rowsOf(buffer: SharedArrayBuffer): Float64Array {
  return new Float64Array(buffer, 0, Math.floor(buffer.byteLength / Float64Array.BYTES_PER_ELEMENT));
}
