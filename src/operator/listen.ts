/** Listening on an address or a socket, and the address by which others reach it. */
import { once } from 'node:events';
import { type AddressInfo, isIPv6, type Server } from 'node:net';
import { onceAMinute, systemClock } from '../clock.ts';
import type { Log } from '../store/engine.ts';

const BACKLOG = 511;
const MAX_READY_MS = 3_000;

export type Address = { host: string; port: number } | { path: string } | { fd: number };

/** The descriptor of the socket that systemd, or another parent, holds for this process; undefined: there is none. */
export function givenSocket({ LISTEN_PID, LISTEN_FDS } = process.env): number | undefined {
  return LISTEN_PID === String(process.pid) && LISTEN_FDS === '1' ? 3 : undefined;
}

/** `option`: the one that chooses another address. */
export async function listen(server: Server, address: Address, log: Log, option = '--port'): Promise<void> {
  try {
    await once(server.listen({ ...address, backlog: BACKLOG }), 'listening');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const where = placeOf(address);
    if (code === 'EADDRINUSE') throw new Error(`${where} is in use by another program: choose another with ${option}`);
    throw new Error(`cannot listen on ${where}: ${/^listen E\w+: (.+) \S+$/.exec(message)?.[1] ?? message}`);
  }
  // A later error is one connection that was not accepted, for want of memory or descriptors: the server goes on.
  const mayLog = onceAMinute(systemClock.now);
  server.on('error', (error) => mayLog() && log.error('a connection was not accepted', { error }));
}

function placeOf(address: Address): string {
  if ('path' in address) return address.path;
  return 'fd' in address ? `descriptor ${address.fd}` : hostAndPort(address.host, address.port);
}

/** The form in a URL: `[::1]:8080`. */
const hostAndPort = (host: string, port: number): string => `${isIPv6(host) ? `[${host}]` : host}:${port}`;

/** The origin by which a program on this machine reaches the server. */
export function originOf(server: Pick<Server, 'address'>): string {
  const { address, port } = server.address() as AddressInfo;
  return `http://${hostAndPort(reachable(address), port)}`;
}

/** No client can connect to a wildcard address: loopback stands in for it. */
const reachable = (address: string): string =>
  /^(?:::ffff:)?0\.0\.0\.0$/.test(address) ? '127.0.0.1' : address === '::' ? '::1' : address;

/** Asks the service that listens there whether it serves. Throws an Error that says why not. */
export async function askReady({ host, port }: { host: string; port: number }) {
  const url = `http://${hostAndPort(reachable(host), port)}/readyz`;
  const reply = await fetch(url, { signal: AbortSignal.timeout(MAX_READY_MS) }).catch(() => undefined);
  if (reply === undefined) throw new Error(`no reply from ${url}: is it another --host or --port?`);
  if (!reply.ok) throw new Error(`${url} says ${reply.status}: ${(await reply.text()).trim()}`);
  return { ready: url };
}
