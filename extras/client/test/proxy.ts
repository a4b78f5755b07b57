/** A client behind a proxy on a real socket that fails on demand: before the service gets a request, after, or instead. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import type { Timing } from '../calls.ts';
import { type ClientOptions, PetstoreClient, PetstoreError } from '../client.ts';

/** `path`: with its query. */
type Received = { method: string; path: string; headers: IncomingHttpHeaders; body: string };
/** `isHalf`: the connection ends within the body. */
export type Canned = { status: number; headers?: Record<string, string>; body?: string; isHalf?: boolean };

/**
 * `pass`: to the service and back. `lost`: cut before the service gets it. `cut`, `half`, `garbage`: the service does
 * it, then the connection is cut, cut within the reply, or carries bytes that are no HTTP. A Canned reply is given in
 * place of the service's.
 */
export type Fault = 'pass' | 'lost' | 'cut' | 'half' | 'garbage' | Canned;

/** Decides about each request, in the order of arrival; may wait. */
type Decide = (received: Received) => Fault | Promise<Fault>;

export function json(value: unknown, headers: Record<string, string> = {}, status = 200): Canned {
  const body = typeof value === 'string' ? value : JSON.stringify(value);
  return { status, headers: { 'content-type': 'application/json; charset=utf-8', ...headers }, body };
}

/** An error page of a proxy. */
export const html = (status: number): Canned => {
  return { status, headers: { 'content-type': 'text/html' }, body: '<h1>Sorry</h1>' };
};

/** An error of the service. */
export function refusal(status: number, code: string, headers: Record<string, string> = {}): Canned {
  return json({ code, message: `because of ${code}`, status }, { 'x-request-id': 'r-1', ...headers }, status);
}

export const retryAfter = (seconds: number | string) => ({ 'Retry-After': `${seconds}` });

/** Gives these one after the other, the last again and again. */
export function inTurn(...faults: Fault[]): () => Fault {
  return () => (faults.length > 1 ? (faults.shift() as Fault) : faults[0]);
}

export const KEY = `ps_live_${'k'.repeat(36)}`;
export const REX = { id: 1, name: 'Rex', categoryId: 1, status: 'available' };
export const ORDER = { id: 3, petId: 1, status: 'delivered', placedAt: '2026-01-01T00:00:00.000Z' };
export const newPet = { name: 'Rex', categoryId: 1 };
export const created = json(REX, { 'x-request-id': 'r-2' }, 201);
export const never = () => new Promise<never>(() => {});

interface Settings extends ClientOptions {
  /** The service's origin. */
  behind: string;
  /** The end of the base URL. */
  path: string;
  /** What is random. By default it is at its greatest, so that every wait has the length of its cap. */
  random: number;
  /** Resolves when time may pass. By default it passes as soon as the client waits. */
  settled: () => Promise<void>;
  /** In place of time that passes at once. */
  sleep: Timing['sleep'];
}

/** Time passes only when the client waits, and `waits` has the length of each wait. */
export async function harness(t: TestContext, fault: Decide, settings: Partial<Settings> = {}) {
  const { behind = '', path = '/v1', random = 1 - Number.EPSILON, settled, sleep, ...options } = settings;
  /** `connections`: how many there ever were. */
  const proxy = { fault, received: [] as Received[], connections: 0, url: '' };
  const answer = async (req: IncomingMessage, res: ServerResponse) => {
    const { method = '', url = '', headers } = req;
    const received = { method, path: url, headers, body: await text(req) };
    proxy.received.push(received);
    const fault = await proxy.fault(received);
    if (typeof fault === 'object') return reply(res, fault);
    if (fault === 'lost') return void req.socket.destroy();
    const real = await forward(received, behind);
    if (fault === 'pass') return reply(res, real);
    if (fault === 'cut') req.socket.destroy();
    if (fault === 'half') reply(res, { ...real, isHalf: true });
    if (fault === 'garbage') req.socket.end('\x16\x03\x01 this is no HTTP\r\n\r\n');
  };
  const server = createServer((req, res) => answer(req, res).catch(() => req.socket.destroy()));
  server.keepAliveTimeout = 600_000; // else a busy machine may keep the client waiting until it is closed
  server.on('connection', () => proxy.connections++);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  proxy.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  t.mock.method(Math, 'random', () => random);
  const time = { now: 1_000 };
  const waits: number[] = [];
  const pass = async (ms: number, signal: AbortSignal) => {
    await settled?.();
    if (signal.aborted) return;
    waits.push(Math.round(ms));
    time.now += ms;
  };
  const timing = { now: () => time.now, sleep: sleep ?? pass };
  const client = new PetstoreClient({ baseUrl: proxy.url + path, key: KEY, ...{ timing, ...options } });
  t.after(async () => {
    server.close();
    server.closeAllConnections();
    await client.close();
  });
  return { proxy, time, waits, client };
}

async function forward({ method, path, headers, body }: Received, behind: string): Promise<Canned> {
  const { host: _, connection: __, 'content-length': ___, ...others } = headers as Record<string, string>;
  const real = await fetch(behind + path, { method, headers: others, body: body || undefined });
  return { status: real.status, headers: Object.fromEntries(real.headers), body: await real.text() };
}

function reply(res: ServerResponse, { status, headers, body = '', isHalf }: Canned): void {
  if (!isHalf) return void res.writeHead(status, headers).end(body);
  res.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(body) });
  res.write(body.slice(0, 5), () => res.socket?.end());
}

/** What a call rejects with; fails when it resolves, or rejects with anything else. */
export async function failure(call: Promise<unknown>): Promise<PetstoreError> {
  const result = await call.then(
    (value) => new Error(`resolved with ${JSON.stringify(value)}`),
    (error) => error,
  );
  if (!(result instanceof PetstoreError)) throw result;
  return result;
}

export async function all<T>(listing: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of listing) items.push(item);
  return items;
}

export async function until(isSo: () => boolean, withinMs = 30_000): Promise<void> {
  const deadline = performance.now() + withinMs;
  while (!isSo()) {
    assert.ok(performance.now() < deadline, `waited in vain for ${isSo}`);
    await new Promise(setImmediate);
  }
}
