/** The one place that writes a response, whether through node:http or, where node gave up on a request, raw. */
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { ignoreFurther } from './ending.ts';
import type { ApiError } from './errors.ts';
import type { LimitTexts } from './limitheaders.ts';
import { expectOf } from './request.ts';

export interface Reply {
  status: number;
  /** Flat: name, value, name, value. Begins with COMMON. */
  headers: string[];
  /** The bytes of the body, a character each: with `latin1` node:http sends head and body as one string. */
  body: string;
}

const JSON_TYPE = 'application/json; charset=utf-8';

/**
 * The headers that every reply begins with. The empty values are filled in for each request, just before they are
 * read: so a reply that is kept is sent again without being put together anew.
 */
const COMMON = [
  ...['X-Request-Id', ''],
  ...['X-RateLimit-Limit', '', 'X-RateLimit-Remaining', '', 'X-RateLimit-Reset', ''],
  ...['RateLimit-Policy', '', 'RateLimit', ''],
  ...['X-Content-Type-Options', 'nosniff', 'Cache-Control', 'no-store'],
];
/** Where the empty values stand. */
const AT = { id: 1, limit: 3, remaining: 5, reset: 7, policy: 9, state: 11 };

/** What is told about the request in the reply to it. */
interface About {
  id: string;
  limits: LimitTexts;
  /** More headers, for instance of the operation. */
  extra: readonly string[];
}

/** All headers of a reply, until the next one is asked about. */
function headersOf({ headers }: Reply, { id, limits, extra }: About): string[] {
  headers[AT.id] = id;
  headers[AT.limit] = limits.limit;
  headers[AT.remaining] = limits.remaining;
  headers[AT.reset] = limits.reset;
  headers[AT.policy] = limits.policy;
  headers[AT.state] = limits.state;
  return extra.length === 0 ? headers : headers.concat(extra);
}

/** A socket that is told to close reads on for so long, so that its client sees the reply and not a reset. */
const LINGER_MS = 1_000;
/** A body that nobody wants is read to its end, and the connection kept, up to this size. */
const MAX_DISCARDED_BYTES = 65_536;

export function jsonReply(status: number, body: string, headers: string[] = []): Reply {
  return withBody(status, JSON_TYPE, body, headers);
}

export function withBody(status: number, type: string, text: string, headers: string[] = []): Reply {
  const length = Buffer.byteLength(text);
  const body = length === text.length ? text : Buffer.from(text).toString('latin1');
  return { status, headers: [...COMMON, 'Content-Type', type, 'Content-Length', String(length), ...headers], body };
}

export function emptyReply(status: number, headers: string[]): Reply {
  return { status, headers: [...COMMON, ...headers], body: '' };
}

export function errorReply(error: Pick<ApiError, 'code' | 'message' | 'status' | 'headers'>): Reply {
  const { code, message, status } = error;
  return jsonReply(status, JSON.stringify({ code, message, status }), error.headers);
}

/** Connections on which `sendRaw` has answered: the newest request, if not all of that has come. */
const answeredRaw = new WeakSet<Socket>();

/** node:http's own note of whether the headers say `Connection: close`. */
interface WrittenResponse extends ServerResponse {
  _last?: boolean;
}

/** Whether this is the reply: not if `sendRaw` has given one. The client may be gone, and the reply in vain. */
export function send(req: IncomingMessage, res: ServerResponse, reply: Reply, about: About): boolean {
  if (res.headersSent) return false;
  if (req.socket.writableEnded && !req.complete && answeredRaw.has(req.socket)) return false;
  if (res.destroyed) return true;
  const headers = headersOf(reply, about);
  res.writeHead(reply.status, req.complete || !hasBody(req) ? headers : endingEarly(req, res, headers));
  if ((res as WrittenResponse)._last) ignoreFurther(req.socket);
  if (req.method === 'HEAD' || reply.body === '') res.end();
  else res.end(reply.body, 'latin1');
  return true;
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined;
}

/** The newest request on a connection that was answered before all of it had come. */
const answeredEarly = new WeakMap<Socket, IncomingMessage>();

/** Whether the request that is still arriving on this connection has had its reply. */
export function hasReply(socket: Socket): boolean {
  return answeredEarly.get(socket)?.complete === false;
}

/**
 * A reply to a request whose body has not all come. If that is too long to be read only to be thrown away (or, after
 * an `Expect`, may never come), the connection ends.
 */
function endingEarly(req: IncomingMessage, res: ServerResponse, headers: string[]): string[] {
  answeredEarly.set(req.socket, req);
  const isEnding = headers.includes('Connection') || !res.shouldKeepAlive;
  const length = Number(req.headers['content-length'] ?? Number.POSITIVE_INFINITY);
  const mustEnd = length > MAX_DISCARDED_BYTES || expectOf(req) !== undefined;
  if (isEnding || mustEnd) lingerOnClose(req.socket);
  return mustEnd && !isEnding ? [...headers, 'Connection', 'close'] : headers;
}

/**
 * node:http closes a connection by `destroySoon`. With bytes of the request still unread the kernel then
 * sends a reset, which may overtake the reply. So: say that no more will come, read on for a while, then close.
 */
function lingerOnClose(socket: Socket): void {
  socket.destroySoon = () => {
    socket.end();
    socket.resume();
    setTimeout(() => socket.destroy(), LINGER_MS).unref();
  };
}

/** Answers on a connection of which node's parser has given up; nothing more can be read from it. */
export function sendRaw(socket: Socket, reply: Reply, about: About): void {
  const headers = [...headersOf(reply, about), 'Date', new Date().toUTCString()];
  if (!headers.includes('Connection')) headers.push('Connection', 'close');
  let head = `HTTP/1.1 ${reply.status} ${STATUS_CODES[reply.status]}\r\n`;
  for (let i = 0; i < headers.length; i += 2) head += `${headers[i]}: ${headers[i + 1]}\r\n`;
  answeredRaw.add(socket);
  ignoreFurther(socket);
  lingerOnClose(socket);
  socket.write(`${head}\r\n${reply.body}`, 'latin1');
  socket.destroySoon();
}
