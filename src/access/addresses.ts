/**
 * Requests without a valid key, counted by address. They come from anywhere and cost nothing to make, so the table has
 * a fixed size, and a live entry is never given up for a newer one: a flood of made-up addresses frees no offender.
 */
import type { Clock } from '../clock.ts';
import type { WindowState } from './limits.ts';
import { MINUTE_MS } from './limits.ts';

/** Refused requests an address has in a minute before it is told to wait. */
export const REFUSED_PER_MINUTE = 60;
const MAX_ADDRESSES = 2 ** 16;
/** Places an address may have. When others live in all of them, it shares one bucket with everybody else like it. */
const PROBES = 8;
/** Sets the hash that tells addresses apart off from the one that places them. */
const TAG_SEED = 0x5bd1e995;

/** Reused between calls: read it before asking again. */
interface Allowance {
  /** Whether the allowance is used up, so that the answer is 429. */
  over: boolean;
  window: WindowState;
  /** When the address may ask without a key again (monotonic ms). */
  retryAt: number;
}

export class Addresses {
  readonly #clock: Clock;
  readonly #seed: number;
  /** The place after all others is the shared bucket. */
  readonly #size: number;
  /** A second hash tells apart the addresses that may lie in the same places. */
  readonly #tags: Uint32Array;
  readonly #ends: Float64Array;
  readonly #used: Uint8Array;
  readonly #allowance: Allowance = {
    over: false,
    window: { limit: REFUSED_PER_MINUTE, remaining: 0, endsAt: 0 },
    retryAt: 0,
  };

  /** `seed`: random, so that nobody can work out which addresses meet. `maxAddresses`: a power of two. */
  constructor(options: { clock: Clock; seed: number; maxAddresses?: number }) {
    this.#clock = options.clock;
    this.#seed = options.seed;
    this.#size = options.maxAddresses ?? MAX_ADDRESSES;
    this.#tags = new Uint32Array(this.#size + 1);
    this.#ends = new Float64Array(this.#size + 1);
    this.#used = new Uint8Array(this.#size + 1);
  }

  /** Counts a request without a valid key, unless the allowance is used up already. */
  refused(address: string): Allowance {
    return this.#ask(address, true);
  }

  /** How the address stands, counting nothing; `over` says what `refused` would. */
  look(address: string): Allowance {
    return this.#ask(address, false);
  }

  #ask(address: string, counts: boolean): Allowance {
    const now = this.#clock.now();
    const tag = hash(address, this.#seed ^ TAG_SEED);
    const place = this.#find(address, tag, now);
    const isOpen = this.#ends[place] > now;
    let used = isOpen ? this.#used[place] : 0;
    const over = used >= REFUSED_PER_MINUTE;
    if (counts && !over) {
      if (!isOpen) {
        this.#tags[place] = tag;
        this.#ends[place] = now + MINUTE_MS;
      }
      this.#used[place] = ++used;
    }
    const allowance = this.#allowance;
    allowance.over = over;
    allowance.window.remaining = REFUSED_PER_MINUTE - used;
    allowance.window.endsAt = used > 0 ? this.#ends[place] : now;
    allowance.retryAt = over ? this.#ends[place] : now;
    return allowance;
  }

  /** Where the address is; else a place that is free; else the shared bucket. */
  #find(address: string, tag: number, now: number): number {
    const home = hash(address, this.#seed);
    let free = this.#size;
    for (let probe = 0; probe < PROBES; probe++) {
      const place = (home + probe) & (this.#size - 1);
      if (this.#ends[place] <= now) {
        if (free === this.#size) free = place;
      } else if (this.#tags[place] === tag) return place;
    }
    return free;
  }
}

/** 32 bits of MurmurHash3 over the characters. */
function hash(text: string, seed: number): number {
  let state = seed | 0;
  for (let at = 0; at < text.length; at++) {
    let word = Math.imul(text.charCodeAt(at), 0xcc9e2d51);
    word = Math.imul((word << 15) | (word >>> 17), 0x1b873593);
    state ^= word;
    state = Math.imul((state << 13) | (state >>> 19), 5) + 0xe6546b64;
  }
  state ^= text.length;
  state = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
  state = Math.imul(state ^ (state >>> 13), 0xc2b2ae35);
  return (state ^ (state >>> 16)) >>> 0;
}
