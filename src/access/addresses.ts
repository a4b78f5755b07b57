/**
 * Requests without a valid key, counted by address. Addresses cost nothing to make up, so only so many are counted, and
 * none that is counted is given up for a newer one: a flood of them frees no offender, and takes no memory.
 */
import type { Clock } from '../clock.ts';
import { MINUTE_MS, type WindowState } from './limits.ts';
import { unixSecondsBy } from './wall.ts';

/** Refused requests an address has in a minute before it is told to wait. */
export const REFUSED_PER_MINUTE = 60;
/** New ones a minute: about 5 MB. All others share one bucket. */
const MAX_ADDRESSES = 2 ** 15;

/** How an address stands; once it is `over`, the answer is 429 until the window ends. */
export interface Allowance extends WindowState {
  over: boolean;
  at: number;
}

interface Bucket {
  used: number;
  endsAt: number;
}

export class Addresses {
  readonly unixSeconds: (moment: number, at: number) => number;
  readonly #clock: Clock;
  readonly #max: number;
  /** Buckets by address. Every minute the older map goes, and with it only what has ended. */
  #buckets = new Map<string, Bucket>();
  #older = new Map<string, Bucket>();
  #turnsAt = 0;
  readonly #shared: Bucket = { used: 0, endsAt: 0 };

  constructor({ clock, maxAddresses = MAX_ADDRESSES }: { clock: Clock; maxAddresses?: number }) {
    this.#clock = clock;
    this.#max = maxAddresses;
    this.unixSeconds = unixSecondsBy(
      () => clock.now(),
      () => clock.wall(),
    );
  }

  /** Counts a request without a valid key, unless the allowance is used up already. */
  refused(address: string): Allowance {
    const at = this.#clock.now();
    if (at >= this.#turnsAt) {
      this.#older = this.#buckets;
      this.#buckets = new Map();
      this.#turnsAt = at + MINUTE_MS;
    }
    let bucket = this.#find(address, at);
    if (bucket === undefined) this.#buckets.set(address, (bucket = { used: 0, endsAt: 0 }));
    if (bucket.endsAt <= at) {
      bucket.used = 0;
      bucket.endsAt = at + MINUTE_MS;
    }
    const over = bucket.used >= REFUSED_PER_MINUTE;
    if (!over) bucket.used++;
    return { ...show(bucket, at), over };
  }

  /** How the address stands, counting nothing; `over` says what `refused` would. */
  look(address: string): Allowance {
    const at = this.#clock.now();
    return show(this.#find(address, at) ?? { used: 0, endsAt: 0 }, at);
  }

  /** A bucket of the older map is not used again: it will go while it is open. */
  #find(address: string, at: number): Bucket | undefined {
    const older = this.#older.get(address);
    if (older !== undefined && older.endsAt > at) return older;
    return this.#buckets.get(address) ?? (this.#buckets.size < this.#max ? undefined : this.#shared);
  }
}

function show(bucket: Bucket, at: number): Allowance {
  const used = bucket.endsAt > at ? bucket.used : 0;
  const remaining = REFUSED_PER_MINUTE - used;
  return { at, limit: REFUSED_PER_MINUTE, remaining, endsAt: used > 0 ? bucket.endsAt : at, over: remaining === 0 };
}
