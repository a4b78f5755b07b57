/** The addresses that a server listens on, and the socket in its data directory on which it answers commands. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, BlockList, connect, isIP, isIPv6, type Server } from 'node:net';
import path from 'node:path';
import { onceAMinute, systemClock } from '../clock.ts';
import type { Log } from '../engine.ts';
import { MAX_CONNECTIONS, MAX_WAITING_CONNECTIONS } from '../http/connections.ts';
import { nameIn } from '../http/hosts.ts';
import { refuseForeign, refuseOthers } from '../store/file/directory.ts';
import { realDisk } from '../store/file/disk.ts';
import { hasNoDescriptor } from './exit.ts';
import type { ServeSettings } from './options.ts';

/** The length of sun_path without its closing NUL. */
const MAX_PATH_BYTES = 107;
/** Descriptors that are not connections to the service: those of the runtime, files, commands, scrapers, a database. */
const MAX_OTHER_DESCRIPTORS = 128;

/** The form in a URL: `[::1]:8080`. */
function hostAndPort(host: string, port: number): string {
  return `${isIPv6(host) ? `[${host}]` : host}:${port}`;
}

/** The origin by which a program on this machine reaches the server: on loopback, if it listens on all addresses. */
export function originOf(server: Pick<Server, 'address'>): string {
  const { address, port } = server.address() as AddressInfo;
  return `http://${reachable(address, port)}`;
}

export const reachable = (address: string, port: number): string => hostAndPort(reachableHost(address), port);

/** The wildcard addresses are none to connect to: loopback stands in for them. */
export function reachableHost(address: string): string {
  return /^(?:::ffff:)?0\.0\.0\.0$/.test(address) ? '127.0.0.1' : address === '::' ? '::1' : address;
}

interface Address {
  host: string;
  port: number;
}

export async function listen(server: Server, at: Address | { path: string }, log: Log): Promise<void> {
  try {
    await once(server.listen({ ...at, backlog: MAX_WAITING_CONNECTIONS }), 'listening');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const where = 'path' in at ? at.path : hostAndPort(at.host, at.port);
    if (code === 'EADDRINUSE') throw new Error(`${where} is in use by another program`);
    throw new Error(`cannot listen on ${where}: ${/^listen E\w+: (.+) \S+$/.exec(message)?.[1] ?? message}`);
  }
  // A later error is one connection that was not accepted, for want of memory or descriptors: no reason to end.
  const mayTell = onceAMinute(systemClock.now);
  server.on('error', (error) => mayTell() && log.error('a connection could not be taken', { error }));
}

/** Lets so many connections be open at once. The newest beyond them is closed without a word; the log tells of it. */
export function letIn(server: Server, most: number, whose: 'metrics' | 'commands', log: Log): void {
  server.maxConnections = most;
  const mayTell = onceAMinute(systemClock.now);
  server.on('drop', () => mayTell() && log.warn(`a connection for ${whose} was closed: ${most} others are open`));
}

/** A limit of the system for this process; undefined if unknown. */
function softLimit(name: string): string | undefined {
  try {
    return new RegExp(`^Max ${name} +(\\S+)`, 'm').exec(readFileSync('/proc/self/limits', 'latin1'))?.[1];
  } catch {
    return undefined;
  }
}

/**
 * The number of connections for which the process has descriptors, beside its files and other sockets. Without this
 * bound the system would close further connections unseen, and the store could open no file.
 */
export function connectionsThatFit(log: Log): number {
  const limit = softLimit('open files') ?? 'unlimited';
  const descriptors = limit === 'unlimited' ? Number.POSITIVE_INFINITY : Number(limit);
  const fitting = Math.max(descriptors - MAX_OTHER_DESCRIPTORS, 1);
  if (fitting >= MAX_CONNECTIONS) return MAX_CONNECTIONS;
  const advice = `raise the limit of open files (ulimit -n) to ${MAX_CONNECTIONS + MAX_OTHER_DESCRIPTORS} for more`;
  log.warn(`only ${fitting} connections are taken at once: ${advice}`, { descriptors });
  return fitting;
}

export function adminSocket(dir: string): string {
  const socket = path.resolve(dir, 'admin.sock');
  if (Buffer.byteLength(socket) <= MAX_PATH_BYTES) return socket;
  throw new Error(`${socket} is too long for a socket: at most ${MAX_PATH_BYTES} bytes`);
}

/** The socket, if its directory is ours alone: an answer from somebody else's cannot be trusted. */
export function ourSocket(dir: string): string {
  refuseForeign(realDisk, dir);
  refuseOthers(realDisk, dir);
  return adminSocket(dir);
}

export const isNobodyThere = ({ code = '' }: NodeJS.ErrnoException): boolean =>
  /^(ENOENT|ENOTDIR|ECONNREFUSED)$/.test(code);

/** Whether a process listens there, even if it does not answer. */
export function isServed(dir: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const socket = connect(ourSocket(dir), () => resolve(true))
      .once('connect', () => socket.destroy())
      .once('error', (error) => (hasNoDescriptor(error) ? reject(error) : resolve(!isNobodyThere(error))));
  });
}

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8);
LOOPBACK.addAddress('::1', 'ipv6');
/** `127.1` is a short form of an address, which the system takes. */
const LOOPBACK_NAME = /^127(?:\.\d+)+$|^(?:.+\.)?localhost\.?$/i;

/** Whether only this machine reaches a listener there, in whatever form the address or the name was given. */
export function isLoopback(host: string): boolean {
  const version = isIP(host);
  return version === 0 ? LOOPBACK_NAME.test(host) : LOOPBACK.check(host, version === 6 ? 'ipv6' : 'ipv4');
}

/** Host names a listener on loopback accepts beside its own. Undefined: any, if others reach it or a proxy checks. */
export function ownNames({
  host,
  trustProxy,
  baseUrl,
  stagingBaseUrl,
  corsOrigin,
}: ServeSettings): string[] | undefined {
  if (!isLoopback(host) || trustProxy > 0) return undefined;
  return [baseUrl, stagingBaseUrl, corsOrigin].flatMap((url) => (url?.includes('//') ? nameIn(new URL(url).host) : []));
}
