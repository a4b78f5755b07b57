/** Memory that the threads of one process share: the rows of the limiter, its locks, and a few numbers. */
import { NOBODY, ROW } from '../access/limiter.ts';
import type { Clock } from '../clock.ts';
import { MAX_SLOTS } from '../store/model.ts';

/** Two callers who share a lock wait for each other without need. */
export const LOCKS = 1024;
/** A lock is held for less than a microsecond. One that is held so long will never be let go. */
const MAX_LOCK_WAIT_MS = 10_000;
/** Tries before a thread sleeps: the holder may have lost its core, and get none while others spin. */
const MAX_SPINS = 100;
const ORIGIN_READINGS = 50;
const [FREE, HELD, AWAITED] = [0, 1, 2];
export const NUMBER_BYTES = Float64Array.BYTES_PER_ELEMENT;

/** Places in `words`, each in a cache line of its own, but for the locks. */
export const PUBLISHED = 0; // the number of the newest batch that readers must show, of 32 bits: it wraps round
export const NEWEST_CHANGED = 16; // the head of the list of changed callers
export const BANS = 32; // how many have begun
const FIRST_LOCK = 48;

/** A plain object, to be handed to each thread. */
export interface Memory {
  words: Int32Array;
  /** From the limiter's clock to the wall clock: so every thread tells the same end of a window. */
  wallOffset: Float64Array;
  /** Only so much of it as is in use takes memory. */
  rows: SharedArrayBuffer;
}

export function newMemory(): Memory {
  const words = new Int32Array(new SharedArrayBuffer(4 * (FIRST_LOCK + LOCKS)));
  words[NEWEST_CHANGED] = NOBODY;
  const growing = { maxByteLength: MAX_SLOTS * ROW * NUMBER_BYTES };
  // @ts-expect-error: that such a buffer may grow (Node 20 and later) is not yet in the types that this project uses.
  const rows = new SharedArrayBuffer(ROW * NUMBER_BYTES, growing);
  return { words, wallOffset: new Float64Array(new SharedArrayBuffer(NUMBER_BYTES)), rows };
}

/** A mutex that wakes nobody in vain: the second of "Futexes Are Tricky" (Ulrich Drepper). */
export function lock(words: Int32Array, number: number): void {
  const at = FIRST_LOCK + number;
  for (let spins = 0; spins < MAX_SPINS; spins++) {
    if (Atomics.compareExchange(words, at, FREE, HELD) === FREE) return;
  }
  let timeouts = 0;
  while (Atomics.exchange(words, at, AWAITED) !== FREE) {
    // The first time may have passed while the whole process was stopped, its holder too.
    if (Atomics.wait(words, at, AWAITED, MAX_LOCK_WAIT_MS / 2) !== 'timed-out') timeouts = 0;
    else if (++timeouts === 2) throw new Error('a thread has ended with a lock of the limiter in hand');
  }
}

export function unlock(words: Int32Array, number: number): void {
  const at = FIRST_LOCK + number;
  if (Atomics.exchange(words, at, FREE) === AWAITED) Atomics.notify(words, at, 1);
}

/**
 * The moment at which this thread's clock stood at 0, on a clock that all threads have: each `performance.now()` has an
 * origin of its own. A thread that loses its core between the two readings gets too little: the most of several counts.
 */
export function clockOrigin({ now }: Clock): number {
  const readings = Array.from({ length: ORIGIN_READINGS }, () => Number(process.hrtime.bigint()) / 1e6 - now());
  return Math.max(...readings);
}
