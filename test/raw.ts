/** Bytes out, bytes in: what a client library would never send, and all that comes back. */
import assert from 'node:assert/strict';
import net from 'node:net';

export interface RawReply {
  status: number;
  headers: Map<string, string>;
  body: string;
}

/** Nothing is expected to take so long; a machine may be busy with other things. */
const ANSWER_MS = 60_000;

export interface RawOptions {
  /** Sent after the first bytes were answered or 50 ms passed. */
  later?: string | Buffer;
  /** Do not wait for the server to close: done when this many replies are there. */
  replies?: number;
  /** Whether to end our side after sending. */
  end?: boolean;
}

/** Sends bytes and gives back every reply, in order. Fails when the connection is reset or nothing comes. */
export function exchange(port: number, bytes: string | Buffer, options: RawOptions = {}): Promise<RawReply[]> {
  return new Promise((resolve, reject) => {
    const socket = net.connect(port, '127.0.0.1');
    const chunks: Buffer[] = [];
    const received = () => parseReplies(Buffer.concat(chunks));
    const end = (settle: () => void) => {
      clearTimeout(timer);
      socket.destroy();
      settle();
    };
    const shown = (text: string | Buffer) => JSON.stringify(text.toString('latin1').slice(0, 300));
    const fail = (why: string) =>
      end(() => reject(new Error(`${why}; sent ${shown(bytes)}; received ${shown(Buffer.concat(chunks))}`)));
    const done = () => end(() => resolve(received()));
    const timer = setTimeout(fail, ANSWER_MS, `no answer in ${ANSWER_MS} ms`);
    socket.on('connect', () => {
      socket.write(bytes as Buffer);
      if (options.end) socket.end();
      if (options.later !== undefined) setTimeout(() => socket.writable && socket.write(options.later as Buffer), 50);
    });
    socket.on('data', (chunk) => {
      chunks.push(chunk);
      if (options.replies !== undefined && received().length >= options.replies) done();
    });
    socket.on('end', done);
    socket.on('error', (error) => fail(`connection failed: ${error.message}`));
  });
}

/** One reply where exactly one is due. */
export async function exchangeOne(port: number, bytes: string | Buffer, options: RawOptions = {}): Promise<RawReply> {
  const replies = await exchange(port, bytes, options);
  assert.equal(replies.length, 1, `one reply is due, not ${replies.length}`);
  return replies[0];
}

function parseReplies(bytes: Buffer): RawReply[] {
  const replies: RawReply[] = [];
  let rest = bytes;
  while (rest.length > 0) {
    const cut = rest.indexOf('\r\n\r\n');
    if (cut === -1) break;
    const [first, ...lines] = rest.subarray(0, cut).toString('latin1').split('\r\n');
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(first)?.[1]);
    assert.ok(status >= 100, `a status line: ${first}`);
    const headers = new Map<string, string>();
    for (const line of lines) {
      const colon = line.indexOf(': ');
      headers.set(line.slice(0, colon).toLowerCase(), line.slice(colon + 2));
    }
    const length = Number(headers.get('content-length') ?? 0);
    const body = rest.subarray(cut + 4, cut + 4 + length);
    rest = rest.subarray(cut + 4 + length);
    if (status === 100) continue;
    if (body.length < length) break;
    replies.push({ status, headers, body: body.toString() });
  }
  return replies;
}

/** Whether it ends in order or by a reset: `once` would reject at the latter. */
export const closed = (socket: net.Socket): Promise<void> =>
  new Promise((resolve) => socket.on('error', () => {}).once('close', () => resolve()));

interface AnyHeaders {
  get(name: string): string | null | undefined;
}
const LIMIT_HEADERS = ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset'];

/** Every reply of the service, whatever was asked, carries these. */
export function assertCommon(headers: AnyHeaders): void {
  assert.match(headers.get('x-request-id') ?? '', /^[\w-]{8,}$/);
  assert.equal(headers.get('x-content-type-options'), 'nosniff');
  assert.equal(headers.get('cache-control'), 'no-store');
  for (const name of LIMIT_HEADERS) assert.match(headers.get(name) ?? '', /^\d+$/, name);
  assert.match(headers.get('ratelimit-policy') ?? '', /^"\w+";q=\d+;w=\d+/);
  assert.match(headers.get('ratelimit') ?? '', /^"\w+";r=\d+;t=\d+/);
}

/** A refusal out of the catalogue: body exact, status the same in both places. */
export function assertError(
  reply: { status: number; headers: AnyHeaders; body: string },
  status: number,
  code: string,
): string {
  assert.equal(reply.status, status, reply.body);
  assertCommon(reply.headers);
  assert.equal(reply.headers.get('content-type'), 'application/json; charset=utf-8');
  const body = JSON.parse(reply.body);
  assert.deepEqual(Object.keys(body), ['code', 'message', 'status']);
  assert.equal(body.code, code, reply.body);
  assert.equal(body.status, status);
  assert.ok(typeof body.message === 'string' && body.message.length > 5);
  return body.message;
}
