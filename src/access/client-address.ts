/** The address under which a request is counted: an IPv4 address, or the /64 of an IPv6 one, each in one form only. */
import { isIPv4, isIPv6 } from 'node:net';

/** Stands for the address of a socket that is closed already, or is no IP socket. */
const NO_ADDRESS = 'unknown';
const IPV6_GROUPS = 8;

/**
 * With `trustedHops` proxies in front, the address is the entry that the outermost of them wrote: number `trustedHops`
 * from the right of X-Forwarded-For. Entries further left may be forged. The list may be too short, or that entry no
 * address, because the request took another way, or because a proxy hides the address: then the address of the
 * connection is counted. The header alone never gets a caller an allowance of its own.
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

/** The one form of an address; undefined for other text. A new string: a slice would keep the header in memory. */
function fold(text: string): string | undefined {
  if (isIPv4(text)) return text.split('.').join('.');
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
  const [head, tail = []] = parts.map((part) => part.split(':').filter((group) => group !== ''));
  return [...head, ...new Array<string>(IPV6_GROUPS - head.length - tail.length).fill('0'), ...tail];
}
