/**
 * Which names a listener on loopback answers to. A page in a browser may make a name of its own lead to this machine
 * (DNS rebinding), and then ask whatever listens here as if it were its own server. An address, `localhost` and a name
 * without a dot it cannot own; other names must be those that the operator gave.
 */
import { isIP } from 'node:net';
import { badRequest } from './errors.ts';

/** Looks at a `Host`, which may be missing in HTTP/1.0. */
export type HostCheck = (host: string | undefined) => void;

/** `names`: of the operator's own addresses; without them any host is taken. */
export function hostCheck(names: readonly string[] | undefined): HostCheck {
  if (names === undefined) return () => {};
  let good: string | undefined; // the newest: most requests name one host
  return (host) => {
    if (host === good || host === undefined) return;
    if (!isOurs(nameIn(host), names)) {
      throw badRequest('this address answers to localhost alone; --base-url tells the service a name of its own');
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
