/** Bytes out, bytes in: what a client library would never send, and all that comes back. */
import assert from 'node:assert/strict';
import net from 'node:net';

interface RawReply {
  status: number;
  headers: Map<string, string>;
  body: string;
}

/** Nothing is expected to take so long; a machine may be busy with other things. */
const ANSWER_MS = 60_000;

export const PET = '{"name":"Rex","categoryId":3}';

/** Requests of one caller, as bytes. `extra`: more lines of the head, each with its end. */
export function requestsOf(key: string) {
  const common = `Host: x\r\nAuthorization: Bearer ${key}\r\n`;
  const get = (extra = '', target = '/v1/pets', version = '1.1') =>
    `GET ${target} HTTP/${version}\r\n${common}${extra}\r\n`;
  const post = (extra: string, body = '', line = 'POST /v1/pets HTTP/1.1') =>
    `${line}\r\n${common}Content-Type: application/json\r\n${extra}\r\n${body}`;
  const addPet = (extra = '', pet = PET) => post(`${extra}Content-Length: ${pet.length}\r\n`, pet);
  return { get, post, addPet };
}

/** The head of a request whose body never ends, in chunks of one byte; and such chunks. */
export const endless = (key?: string): string =>
  `POST /v1/pets HTTP/1.1\r\nHost:x\r\nContent-Type:application/json\r\nTransfer-Encoding:chunked\r\n${
    key === undefined ? '' : `Authorization:Bearer ${key}\r\n`
  }\r\n`;
export const ONE_BYTE = '1\r\n \r\n';

interface RawOptions {
  /** Sent 50 ms after the first bytes, and after `taken`. */
  later?: string | Buffer;
  taken?: Promise<unknown>;
  /** Do not wait for the server to close: done when this many replies are there. */
  replies?: number;
  /** Whether to end our side after sending. */
  end?: boolean;
}

/** Sends bytes and gives back every reply, in order. Fails when the connection is reset or nothing comes. */
export async function exchange(port: number, bytes: string | Buffer, options: RawOptions = {}): Promise<RawReply[]> {
  const { later, taken = Promise.resolve(), replies, end } = options;
  const socket = net.connect(port, '127.0.0.1');
  socket.setTimeout(ANSWER_MS, () => socket.destroy(new Error(`nothing in ${ANSWER_MS} ms`)));
  socket.write(bytes);
  if (end) socket.end();
  if (later !== undefined) taken.then(() => setTimeout(() => socket.writable && socket.write(later), 50));
  let received = Buffer.alloc(0);
  try {
    for await (const chunk of socket) {
      received = Buffer.concat([received, chunk]);
      if (replies !== undefined && parseReplies(received).length >= replies) break;
    }
  } catch (error) {
    const [sent, came] = [bytes, received].map((text) => JSON.stringify(text.toString('latin1').slice(0, 300)));
    throw new Error(`${(error as Error).message}; sent ${sent}; received ${came}`);
  }
  return parseReplies(received);
}

/** One reply where exactly one is due. */
export async function exchangeOne(port: number, bytes: string | Buffer, options: RawOptions = {}): Promise<RawReply> {
  const replies = await exchange(port, bytes, options);
  assert.equal(replies.length, 1, `one reply is due, not ${replies.length}`);
  return replies[0];
}

export function parseReplies(bytes: Buffer): RawReply[] {
  const replies: RawReply[] = [];
  for (let at = 0, cut = 0; (cut = bytes.indexOf('\r\n\r\n', at)) !== -1; ) {
    const [first, ...lines] = bytes.toString('latin1', at, cut).split('\r\n');
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(first)?.[1]);
    assert.ok(status >= 100, `a status line: ${first}`);
    const headers = new Map(
      lines.map((line) => line.split(/: (.*)/)).map(([name, value]) => [name.toLowerCase(), value]),
    );
    at = cut + 4 + Number(headers.get('content-length') ?? 0);
    if (at > bytes.length) break;
    replies.push({ status, headers, body: bytes.toString('utf8', cut + 4, at) });
  }
  return replies;
}

/** Of each reply its status, and what becomes of the connection. */
export const told = (replies: RawReply[]) =>
  replies.map(({ status, headers }) => `${status} ${headers.get('connection')}`);

/** Whether it ends in order or by a reset: `once` would reject at the latter. */
export const closed = (socket: net.Socket): Promise<void> =>
  new Promise((resolve) => socket.on('error', () => {}).once('close', () => resolve()));

interface AnyHeaders {
  get(name: string): string | null | undefined;
}
const LIMIT_HEADERS = ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset'];

/**
 * Every reply of the service, whatever was asked, carries these. `isCounted`: it tells the limits, as all under `/v1` do.
 */
export function assertCommon(headers: AnyHeaders, isCounted = true): void {
  assert.match(headers.get('x-request-id') ?? '', /^[\w-]{8,}$/);
  assert.equal(headers.get('x-content-type-options'), 'nosniff');
  assert.equal(headers.get('cache-control'), 'no-store');
  if (!isCounted) {
    for (const name of [...LIMIT_HEADERS, 'ratelimit-policy', 'ratelimit'])
      assert.equal(headers.get(name) ?? '', '', name);
    return;
  }
  for (const name of LIMIT_HEADERS) assert.match(headers.get(name) ?? '', /^\d+$/, name);
  assert.match(headers.get('ratelimit-policy') ?? '', /^"\w+";q=\d+;w=\d+/);
  assert.match(headers.get('ratelimit') ?? '', /^"\w+";r=\d+;t=\d+/);
}

/** A page is for whoever has no key. */
export async function checkPage(url: URL, type: string, begin: string): Promise<void> {
  const get = (method = 'GET') => fetch(url, { method });
  const reply = await get();
  const body = await reply.text();
  assert.equal(reply.status, 200);
  assertCommon(new Map(reply.headers), false);
  assert.equal(reply.headers.get('content-type'), type);
  assert.equal(Number(reply.headers.get('content-length')), Buffer.byteLength(body));
  assert.ok(body.startsWith(begin), body.slice(0, 40));
  const head = await get('HEAD');
  assert.deepEqual([head.status, head.headers.get('content-length')], [200, `${Buffer.byteLength(body)}`]);
}

/** A refusal out of the catalogue: body exact, status the same in both places. */
export function assertError(
  reply: { status: number; headers: AnyHeaders; body: string },
  status: number,
  code: string,
  isCounted = true,
): string {
  assert.equal(reply.status, status, reply.body);
  assertCommon(reply.headers, isCounted);
  assert.equal(reply.headers.get('content-type'), 'application/json; charset=utf-8');
  const body = JSON.parse(reply.body);
  assert.deepEqual(Object.keys(body), ['code', 'message', 'status']);
  assert.equal(body.code, code, reply.body);
  assert.equal(body.status, status);
  assert.ok(typeof body.message === 'string' && body.message.length > 5);
  return body.message;
}
