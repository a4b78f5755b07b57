/**
 * Requests without a valid key, counted by address. They come from anywhere and cost nothing to make, so the table has
 * a fixed size, and a live entry is never given up for a newer one: a flood of made-up addresses frees no offender.
 */
import type { Clock } from '../clock.ts';
import type { WindowState } from './limits.ts';
import { MINUTE_MS } from './limits.ts';

/** Refused requests an address has in a minute before it is told to wait. */
export const REFUSED_PER_MINUTE = 60;
export const MAX_ADDRESSES = 2 ** 16;
/** Places an address may have. When others live in all of them, it shares one bucket with everybody else like it. */
const PROBES = 8;
/** Sets the hash that tells addresses apart off from the one that places them. */
const TAG_SEED = 0x5bd1e995;

/** Reused between calls: read it before asking again. */
export interface Allowance {
  /** Whether the allowance is used up, so that the answer is 429. */
  over: boolean;
  window: WindowState;
  /** When the address may ask without a key again (monotonic ms). */
  retryAt: number;
}

export interface AddressesOptions {
  clock: Clock;
  /** Random, so that nobody can work out which addresses meet. */
  seed: number;
  /** A power of two. */
  maxAddresses?: number;
}

export class Addresses {
  readonly #clock: Clock;
  readonly #seed: number;
  readonly #mask: number;
  /** The last place is the shared bucket. */
  readonly #shared: number;
  /** A second hash tells apart the addresses that may lie in the same places. */
  readonly #tags: Uint32Array;
  readonly #ends: Float64Array;
  readonly #used: Uint8Array;
  readonly #allowance: Allowance = {
    over: false,
    window: { limit: REFUSED_PER_MINUTE, remaining: 0, endsAt: 0 },
    retryAt: 0,
  };

  constructor(options: AddressesOptions) {
    const size = options.maxAddresses ?? MAX_ADDRESSES;
    this.#clock = options.clock;
    this.#seed = options.seed;
    this.#mask = size - 1;
    this.#shared = size;
    this.#tags = new Uint32Array(size + 1);
    this.#ends = new Float64Array(size + 1);
    this.#used = new Uint8Array(size + 1);
  }

  /** Counts a request without a valid key, unless the allowance is used up already. */
  refused(address: string): Allowance {
    const now = this.#clock.now();
    const tag = hash(address, this.#seed ^ TAG_SEED);
    const place = this.#find(address, tag, now);
    if (this.#ends[place] <= now) {
      this.#tags[place] = tag;
      this.#used[place] = 0;
      this.#ends[place] = now + MINUTE_MS;
    }
    const over = this.#used[place] >= REFUSED_PER_MINUTE;
    if (!over) this.#used[place]++;
    return this.#tell(place, over, now);
  }

  /** How the address stands, counting nothing; `over` says what `refused` would. */
  look(address: string): Allowance {
    const now = this.#clock.now();
    const place = this.#find(address, hash(address, this.#seed ^ TAG_SEED), now);
    return this.#tell(place, this.#ends[place] > now && this.#used[place] >= REFUSED_PER_MINUTE, now);
  }

  /** Where the address is; else a place that is free; else the shared bucket. */
  #find(address: string, tag: number, now: number): number {
    const home = hash(address, this.#seed);
    let free = this.#shared;
    for (let probe = 0; probe < PROBES; probe++) {
      const place = (home + probe) & this.#mask;
      if (this.#ends[place] <= now) {
        if (free === this.#shared) free = place;
      } else if (this.#tags[place] === tag) return place;
    }
    return free;
  }

  #tell(place: number, over: boolean, now: number): Allowance {
    const allowance = this.#allowance;
    const open = this.#ends[place] > now;
    allowance.over = over;
    allowance.window.remaining = REFUSED_PER_MINUTE - (open ? this.#used[place] : 0);
    allowance.window.endsAt = open ? this.#ends[place] : now;
    allowance.retryAt = over ? allowance.window.endsAt : now;
    return allowance;
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
