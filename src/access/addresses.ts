/**
 * Counts requests by address: those without a valid key, and those for large pages, which need none. Addresses cost
 * nothing to make up, so at most `MAX_ADDRESSES` are counted, and none of them is given up for a newer one: a flood of
 * addresses frees no offender, and takes no further memory.
 */
import { type Clock, MINUTE_MS, onceAMinute } from '../clock.ts';
import type { WindowState } from './limits.ts';
import { steadyOffset } from './wall.ts';

/** Refused requests that an address has in a minute before it gets a 429. */
const REFUSED_PER_MINUTE = 60;
/** Requests for the console or the OpenAPI document that an address has in a minute: some 30 MB without gzip. */
export const PAGES_PER_MINUTE = 300;
/** Addresses that are counted at once: about 5 MB. All others share one bucket. */
const MAX_ADDRESSES = 2 ** 15;
/** The most addresses of one IPv6 /48 with a bucket each; its others share one. One customer may have a whole /48. */
const MAX_ADDRESSES_OF_NETWORK = 256;
/** The time between two searches for minutes that have ended, whose places new addresses then get. */
const SWEEP_EVERY_MS = 1_000;

/** The window of an address. While it is `over`, its requests get a 429. */
export interface Allowance extends WindowState {
  over: boolean;
  at: number;
}

interface Bucket {
  used: number;
  endsAt: number;
}

/** An IPv6 /48: the bucket that its further addresses share, and how many have one of their own. */
interface Network extends Bucket {
  addresses: number;
}

/** Requests from addresses without a bucket of their own, since the start: in the bucket of a /48, or of all. */
export interface CountedTogether {
  ofNetworks: number;
  ofAll: number;
}

interface Options {
  clock: Clock;
  perMinute?: number;
  /** Called when there were more such requests, once a minute at most. */
  onCountedTogether?: (requests: CountedTogether) => void;
}

/** The first three groups of an IPv6 address; undefined for an IPv4 address. */
function networkOf(address: string): string | undefined {
  const first = address.indexOf(':');
  return first === -1 ? undefined : address.slice(0, address.indexOf(':', address.indexOf(':', first + 1) + 1));
}

export class Addresses {
  readonly #clock: Clock;
  readonly #perMinute: number;
  readonly #wallOffset: (at: number) => number;
  readonly #buckets = new Map<string, Bucket>();
  readonly #networks = new Map<string, Network>();
  readonly #shared: Bucket = { used: 0, endsAt: 0 };
  readonly together: CountedTogether = { ofNetworks: 0, ofAll: 0 };
  readonly #onCountedTogether: Options['onCountedTogether'];
  readonly #mayTell: () => boolean;
  #sweepAt = 0;

  constructor({ clock, perMinute = REFUSED_PER_MINUTE, onCountedTogether }: Options) {
    this.#clock = clock;
    this.#perMinute = perMinute;
    this.#onCountedTogether = onCountedTogether;
    this.#mayTell = onceAMinute(() => clock.now());
    this.#wallOffset = steadyOffset(() => clock.wall());
  }

  /** Counts a request, unless the allowance is used up already. */
  count(address: string): Allowance {
    const now = this.#clock.now();
    if (now >= this.#sweepAt) this.#sweep(now);
    const bucket = this.#buckets.get(address) ?? this.#bucketFor(address, now);
    if (bucket.endsAt <= now) Object.assign(bucket, { used: 0, endsAt: now + MINUTE_MS });
    const over = bucket.used === this.#perMinute;
    if (!over) bucket.used++;
    return { ...this.#show(bucket, now), over };
  }

  /** The allowance of an address. Counts nothing. `over`: whether `count` would refuse. */
  look(address: string): Allowance {
    const now = this.#clock.now();
    const bucket = this.#buckets.get(address) ?? this.#sharedIn(networkOf(address), now) ?? { used: 0, endsAt: 0 };
    return this.#show(bucket, now);
  }

  /**
   * The bucket that a new address of this network must share; undefined: it may have one of its own. A bucket is shared
   * until its minute ends, though there may be room before: else an address that was refused in it would get a bucket
   * of its own, and with it a second allowance for the same minute.
   */
  #sharedIn(network: string | undefined, now: number): Bucket | undefined {
    const found = this.#networks.get(network ?? '');
    const isCrowded = found !== undefined && found.addresses >= MAX_ADDRESSES_OF_NETWORK;
    if (isCrowded || (found?.endsAt ?? 0) > now) return found;
    return this.#buckets.size >= MAX_ADDRESSES || this.#shared.endsAt > now ? this.#shared : undefined;
  }

  /** The bucket of an address that has none yet. */
  #bucketFor(address: string, now: number): Bucket {
    const name = networkOf(address);
    const shared = this.#sharedIn(name, now);
    if (shared !== undefined) {
      this.#countTogether(shared);
      return shared;
    }
    const bucket = { used: 0, endsAt: 0 };
    this.#buckets.set(address, bucket);
    if (name === undefined) return bucket;
    const network = this.#networks.get(name) ?? { used: 0, endsAt: 0, addresses: 0 };
    network.addresses++;
    this.#networks.set(name, network);
    return bucket;
  }

  #sweep(now: number): void {
    this.#sweepAt = now + SWEEP_EVERY_MS;
    for (const [address, { endsAt }] of this.#buckets) {
      if (endsAt > now) continue;
      this.#buckets.delete(address);
      const network = this.#networks.get(networkOf(address) ?? '');
      if (network !== undefined) network.addresses--;
    }
    for (const [name, { addresses, endsAt }] of this.#networks) {
      if (addresses === 0 && endsAt <= now) this.#networks.delete(name);
    }
  }

  #countTogether(bucket: Bucket): void {
    this.together[bucket === this.#shared ? 'ofAll' : 'ofNetworks']++;
    if (this.#mayTell()) this.#onCountedTogether?.(this.together);
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
