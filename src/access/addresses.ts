/** The allowance for requests without a valid key, by address: an IPv4 address, or the /64 of an IPv6 one. */
import { isIPv4, isIPv6 } from 'node:net';
import { type Clock, MINUTE_MS } from '../clock.ts';

/** Refused requests that an address has in a minute before it gets a 429. */
const REFUSED_PER_MINUTE = 60;
/** Addresses that are counted at once: some 5 MB. All others share one allowance, and no address is given up for them. */
const MAX_ADDRESSES = 2 ** 15;
const SHARED = 'shared';

/** Moments are ms of the monotonic clock. */
export interface Allowance {
  readonly at: number;
  readonly limit: number;
  readonly remaining: number;
  readonly endsAt: number;
  /** True if the request is beyond the allowance. */
  readonly isOver: boolean;
}

export class Addresses {
  readonly #clock: Clock;
  readonly #max: number;
  /** All addresses have the same minute. It begins with the first refused request after the last minute has ended. */
  readonly #used = new Map<string, number>();
  #endsAt = 0;
  /** Requests since the start that were counted in the shared allowance. */
  shared = 0;

  constructor(clock: Clock, max = MAX_ADDRESSES) {
    this.#clock = clock;
    this.#max = max;
  }

  count(address: string): Allowance {
    const at = this.#clock.now();
    if (at >= this.#endsAt) {
      this.#used.clear();
      this.#endsAt = at + MINUTE_MS;
    }
    const name = this.#nameOf(address);
    if (name === SHARED) this.shared++;
    const used = (this.#used.get(name) ?? 0) + 1;
    const isOver = used > REFUSED_PER_MINUTE;
    if (!isOver) this.#used.set(name, used);
    return this.#allowance(at, isOver ? REFUSED_PER_MINUTE : used, isOver);
  }

  /** Counts nothing. */
  look(address: string): Allowance {
    const at = this.#clock.now();
    return this.#allowance(at, at < this.#endsAt ? (this.#used.get(this.#nameOf(address)) ?? 0) : 0, false);
  }

  #nameOf(address: string): string {
    return this.#used.size < this.#max || this.#used.has(address) ? address : SHARED;
  }

  #allowance(at: number, used: number, isOver: boolean): Allowance {
    const endsAt = Math.max(at, this.#endsAt);
    return { at, limit: REFUSED_PER_MINUTE, remaining: REFUSED_PER_MINUTE - used, endsAt, isOver };
  }
}

/** Stands for the address of a socket that is closed already, or is no IP socket. */
const NO_ADDRESS = 'unknown';
const IPV6_GROUPS = 8;

/**
 * With `trustedHops` proxies in front, the address is the entry that the outermost of them wrote: number `trustedHops`
 * from the right of X-Forwarded-For. Entries further left may be forged. If that entry is missing or no address, the
 * address of the connection is counted.
 */
export function clientAddress(
  socketAddress: string | undefined,
  forwardedFor: string | undefined,
  trustedHops: number,
): string {
  const direct = fold(socketAddress ?? '') ?? NO_ADDRESS;
  if (trustedHops === 0 || forwardedFor === undefined) return direct;
  const entries = forwardedFor.split(',').map((entry) => entry.trim());
  return fold(withoutPort(entries.filter((entry) => entry !== '').at(-trustedHops) ?? '')) ?? direct;
}

/** Cuts `1.2.3.4:80`, `[::1]:80` and `[::1]` to the bare address. A bare IPv6 address has no port. */
function withoutPort(entry: string): string {
  return /^\[([^\]]*)\](?::\d+)?$/.exec(entry)?.[1] ?? /^([^:]+):\d+$/.exec(entry)?.[1] ?? entry;
}

/** The one form of an address; undefined for other text. */
function fold(text: string): string | undefined {
  if (isIPv4(text)) return text.split('.').join('.'); // a new string: a slice would keep the header in memory
  if (!isIPv6(text)) return undefined;
  const groups = groupsOf(text);
  if (groups.slice(0, 6).join(':') !== '0:0:0:0:0:ffff') return `${groups.slice(0, 4).join(':')}::/64`;
  const [high, low] = groups.slice(6).map((group) => Number.parseInt(group, 16));
  return [high >> 8, high & 255, low >> 8, low & 255].join('.');
}

/** The eight groups of an address that `isIPv6` has accepted; a zone id (`%eth0`) says nothing about the client. */
function groupsOf(text: string): string[] {
  const { hostname } = new URL(`http://[${text.split('%', 1)[0]}]`); // without dots, and without needless zeros
  const parts = hostname.slice(1, -1).split('::');
  const [left, right = []] = parts.map((part) => part.split(':').filter((group) => group !== ''));
  return [...left, ...new Array<string>(IPV6_GROUPS - left.length - right.length).fill('0'), ...right];
}
