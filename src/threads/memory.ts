/** What the threads of one process hold in common: the rows of the limiter, its locks, and a few numbers. */
import { ROW } from '../access/limiter.ts';
import { MAX_SLOTS } from '../store/model.ts';

/** Of the limiter's locks, a power of 2: two callers who meet in one wait for each other without need. */
export const LOCKS = 1024;
/** A lock is held for less than a microsecond. One that is not let go in so long never will be. */
const MAX_LOCK_WAIT_MS = 10_000;
/** Tries before a thread sleeps: its holder may have lost its core, and get none while others spin. */
const MAX_SPINS = 100;
const [FREE, HELD, AWAITED] = [0, 1, 2];

/** Places in `words`, each at the beginning of a cache line of its own. */
export const PUBLISHED = 0; // the number of the newest batch that readers must show, of 32 bits: it wraps round
export const NEWEST_CHANGED = 16; // of the list of changed callers
export const BANS = 32; // how many have begun
const FIRST_LOCK = 48;

/** A plain object, to be handed to each thread. */
export interface Memory {
  words: Int32Array;
  /** What is added to the limiter's clock to tell the wall clock's time. */
  wallOffset: BigInt64Array;
  /** Eight numbers of 64 bits a caller. Only so much of it as is in use takes memory. */
  rows: SharedArrayBuffer;
}

export function newMemory(): Memory {
  const maxByteLength = MAX_SLOTS * ROW * Float64Array.BYTES_PER_ELEMENT;
  return {
    words: new Int32Array(new SharedArrayBuffer(4 * (FIRST_LOCK + LOCKS))),
    wallOffset: new BigInt64Array(new SharedArrayBuffer(8)),
    // @ts-expect-error: `maxByteLength` (Node 20 and later) is not in the library of types that this project uses.
    rows: new SharedArrayBuffer(ROW * Float64Array.BYTES_PER_ELEMENT, { maxByteLength }),
  };
}

/** A mutex of three states, so that nobody is woken in vain: "Futexes Are Tricky" (Ulrich Drepper), the second one. */
export function lock(words: Int32Array, number: number): void {
  const at = FIRST_LOCK + number;
  for (let spins = 0; spins < MAX_SPINS; spins++) {
    if (Atomics.compareExchange(words, at, FREE, HELD) === FREE) return;
  }
  while (Atomics.exchange(words, at, AWAITED) !== FREE) {
    if (Atomics.wait(words, at, AWAITED, MAX_LOCK_WAIT_MS) === 'timed-out') {
      throw new Error(`a lock of the limiter was not let go in ${MAX_LOCK_WAIT_MS} ms`);
    }
  }
}

export function unlock(words: Int32Array, number: number): void {
  const at = FIRST_LOCK + number;
  if (Atomics.exchange(words, at, FREE) === AWAITED) Atomics.notify(words, at, 1);
}
