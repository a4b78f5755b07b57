/**
 * Protects a listener on loopback against DNS rebinding: the owner of a web page may let a host name resolve to this
 * machine, so that the page can talk to a local server as to its own. Nobody owns an address, `localhost` or a name
 * without a dot; any other name must be one that the operator gave.
 */
import { isIP } from 'node:net';
import { badRequest } from './errors.ts';

/** Throws on a foreign `Host`; the header may be missing in HTTP/1.0. */
export type HostCheck = (host: string | undefined) => void;

/** `names`: the host names that the operator gave; undefined: any host is accepted. */
export function hostCheck(names: readonly string[] | undefined): HostCheck {
  if (names === undefined) return () => {};
  let good: string | undefined; // the newest host that was accepted: most requests name the same
  return (host) => {
    if (host === good || host === undefined) return;
    if (!isOurs(nameIn(host), names)) {
      const must = 'the header Host must name localhost or an IP address';
      throw badRequest(`${must}; the operator can allow another name with --base-url`);
    }
    good = host;
  };
}

const isOurs = (name: string, names: readonly string[]): boolean =>
  isIP(name) !== 0 || !name.includes('.') || name.endsWith('.localhost') || names.includes(name);

/** The name in a `Host`, without brackets and port. */
export function nameIn(host: string): string {
  const name = host.replace(/:\d*$/, '').replace(/^\[(.*)\]$/, '$1');
  return name.toLowerCase();
}
