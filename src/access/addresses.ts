/**
 * Counts requests by address: those without a valid key, and those for large pages, which need none. Addresses cost
 * nothing to make up, so at most `MAX_ADDRESSES` are counted, and none of them is given up for a newer one: a flood of
 * addresses frees no offender, and takes no further memory.
 */
import type { Clock } from '../clock.ts';
import { MINUTE_MS, type WindowState } from './limits.ts';
import { steadyOffset } from './wall.ts';

/** Refused requests that an address has in a minute before it gets a 429. */
const REFUSED_PER_MINUTE = 60;
/** Requests for the console or the OpenAPI document that an address has in a minute: together 30 MB at most. */
export const PAGES_PER_MINUTE = 300;
/** Addresses that are counted at once: about 5 MB. All others share one bucket. */
const MAX_ADDRESSES = 2 ** 15;
/** How often minutes that have ended are looked for, so that newer addresses get their place. */
const SWEEP_EVERY_MS = 1_000;

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
  readonly #clock: Clock;
  readonly #perMinute: number;
  readonly #wallOffset: (at: number) => number;
  readonly #buckets = new Map<string, Bucket>();
  readonly #shared: Bucket = { used: 0, endsAt: 0 };
  #sweepAt = 0;

  constructor({ clock, perMinute = REFUSED_PER_MINUTE }: { clock: Clock; perMinute?: number }) {
    this.#clock = clock;
    this.#perMinute = perMinute;
    this.#wallOffset = steadyOffset(() => clock.wall());
  }

  /** Counts a request, unless the allowance is used up already. */
  count(address: string): Allowance {
    const now = this.#clock.now();
    if (now >= this.#sweepAt) {
      for (const [old, { endsAt }] of this.#buckets) if (endsAt <= now) this.#buckets.delete(old);
      this.#sweepAt = now + SWEEP_EVERY_MS;
    }
    let bucket = this.#buckets.get(address);
    if (bucket === undefined && this.#buckets.size < MAX_ADDRESSES) {
      bucket = { used: 0, endsAt: 0 };
      this.#buckets.set(address, bucket);
    }
    bucket ??= this.#shared;
    if (bucket.endsAt <= now) Object.assign(bucket, { used: 0, endsAt: now + MINUTE_MS });
    const over = bucket.used === this.#perMinute;
    if (!over) bucket.used++;
    return { ...this.#show(bucket, now), over };
  }

  /** The allowance of an address, counting nothing. `over`: whether `count` would refuse. */
  look(address: string): Allowance {
    const isFull = this.#buckets.size >= MAX_ADDRESSES;
    const bucket = this.#buckets.get(address) ?? (isFull ? this.#shared : { used: 0, endsAt: 0 });
    return this.#show(bucket, this.#clock.now());
  }

  #show({ used, endsAt }: Bucket, now: number): Allowance {
    const offset = this.#wallOffset(now);
    const limit = this.#perMinute;
    const remaining = limit - (endsAt > now ? used : 0);
    const isOpen = remaining < limit;
    const limits = { limit, remaining, over: remaining === 0 };
    return { ...limits, endsAt: (isOpen ? endsAt : now) + offset, at: now + offset };
  }
}
