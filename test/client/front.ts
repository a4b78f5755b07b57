/**
 * The client behind a front on a real socket that does harm: before the service hears of a request, after it has
 * answered, or in its place.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { makeKey } from '../../src/access/keys.ts';
import { type ClientOptions, PetstoreClient, PetstoreError } from '../../src/client/client.ts';
import type { Timing } from '../../src/client/turns.ts';
import { SetClock } from '../clock.ts';

/** `path`: with its query. */
type Asked = { method: string; path: string; headers: IncomingHttpHeaders; body: string };
/** `isHalf`: the connection ends within the body. */
export type Answer = { status: number; headers?: Record<string, string>; body?: string; isHalf?: boolean };

/**
 * `pass`: to the service and back. `lost`: cut before the service hears of it. `cut`, `half`, `garbage`: the
 * service does it, then the connection is cut, cut within the reply, or carries bytes that are no HTTP. An Answer is
 * given in the service's place.
 */
export type Fault = 'pass' | 'lost' | 'cut' | 'half' | 'garbage' | Answer;

/** Decides about each request, in the order of arrival; may wait. */
type Decide = (asked: Asked) => Fault | Promise<Fault>;

async function forward({ method, path, headers, body }: Asked, behind: string): Promise<Answer> {
  const { host: _, connection: __, 'content-length': ___, ...kept } = headers as Record<string, string>;
  const real = await fetch(behind + path, { method, headers: kept, body: body || undefined });
  return { status: real.status, headers: Object.fromEntries(real.headers), body: await real.text() };
}

function reply(res: ServerResponse, { status, headers, body = '', isHalf }: Answer): void {
  if (!isHalf) return void res.writeHead(status, headers).end(body);
  res.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(body) });
  res.write(body.slice(0, 5), () => res.socket?.end());
}

export function json(value: unknown, headers: Record<string, string> = {}, status = 200): Answer {
  const body = typeof value === 'string' ? value : JSON.stringify(value);
  return { status, headers: { 'content-type': 'application/json; charset=utf-8', ...headers }, body };
}

/** What a proxy says. */
export const html = (status: number): Answer => {
  return { status, headers: { 'content-type': 'text/html' }, body: '<h1>Sorry</h1>' };
};

/** An error as the service tells it. */
export function refusal(status: number, code: string, headers: Record<string, string> = {}): Answer {
  return json({ code, message: `because of ${code}`, status }, { 'x-request-id': 'r-1', ...headers }, status);
}

/** Gives these one after the other, the last again and again. */
export function inTurn(...faults: Fault[]): () => Fault {
  return () => (faults.length > 1 ? (faults.shift() as Fault) : faults[0]);
}

export const KEY = makeKey('production');
export const REX = { id: 1, name: 'Rex', categoryId: 1, status: 'available' };
export const newPet = { name: 'Rex', categoryId: 1 };

/** `behind`: the service's address. `path`: the end of the base URL. */
type Options = Partial<ClientOptions & { behind: string; path: string; time: SetClock; timing: Partial<Timing> }>;

/**
 * A client behind a front. Time passes only when it waits, and how long it waited each time is told; what is random is
 * at its greatest, so that every backoff has the length of its cap.
 */
export async function harness(t: TestContext, fault: Decide, options: Options = {}) {
  const { behind = '', path = '/v1', time = new SetClock(), ...given } = options;
  /** `connections`: how many there ever were. */
  const front = { fault, asked: [] as Asked[], connections: 0, url: '', allClosed };
  let open = 0;
  /** Resolves once no connection is open: none is ended by the front because it is idle. */
  function allClosed(): Promise<void> {
    return until(() => open === 0);
  }
  async function answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const { method = '', url = '', headers } = req;
    const asked = { method, path: url, headers, body: await text(req) };
    front.asked.push(asked);
    const fault = await front.fault(asked);
    if (typeof fault === 'object') return reply(res, fault);
    if (fault === 'lost') return void req.socket.destroy();
    const real = await forward(asked, behind);
    if (fault === 'pass') return reply(res, real);
    if (fault === 'cut') req.socket.destroy();
    if (fault === 'half') reply(res, { ...real, isHalf: true });
    if (fault === 'garbage') req.socket.end('\x16\x03\x01 this is no HTTP\r\n\r\n');
  }
  const server = createServer((req, res) => answer(req, res).catch(() => req.socket.destroy()));
  server.keepAliveTimeout = 600_000; // else a busy machine may keep the client waiting until it is closed
  server.on('connection', (socket) => {
    front.connections++;
    open++;
    socket.on('close', () => open--);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  front.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  t.mock.method(Math, 'random', () => 1 - Number.EPSILON);
  const waits: number[] = [];
  const sleep = async (ms: number) => {
    waits.push(ms);
    time.advance(ms);
  };
  const timing = { now: () => time.now(), sleep };
  const client = new PetstoreClient({ baseUrl: front.url + path, key: KEY, ...{ timing, ...given } });
  t.after(async () => {
    server.close();
    server.closeAllConnections();
    await client.close();
  });
  return { front, time, waits, client };
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
