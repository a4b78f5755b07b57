/** Writes every response except those that the lab breaks: through node:http or, after a parse error, to the socket. */
import { STATUS_CODES, validateHeaderValue } from 'node:http';
import type { Connection, Outgoing } from './connection.ts';
import { type ApiError, CATALOGUE, MAX_BODY_BYTES } from './errors.ts';
import type { Incoming } from './messages.ts';
import { CAN_END_WHOLE, endWhole } from './private.ts';
import { expectOf, isEmpty } from './request.ts';

export interface Reply {
  status: number;
  /** Headers of this reply alone. Flat: name, value, name, value. */
  headers: string[];
  /** The body, one character for each byte (`latin1`), so that head and body are sent as one string. */
  body: string;
  /** The text of `headers`, if the reply is `prepared`. */
  lines?: string;
  /** The ETag; present if the client may store this reply, and revalidate it. */
  etag?: string;
  /** The 304 that may be sent instead, made when it is first needed. */
  unchanged?: Reply;
}

/** The parts of a reply's head that depend on the request. */
export interface About {
  id: string;
  /** The header lines of the caller's limits, as they are sent. */
  limits: string;
  date: string;
  /** The end of the head, made by `endingFor`. */
  ending: string;
  /** More headers, for instance those of the endpoint. */
  extra: readonly string[];
}

export const JSON_UTF_8 = 'application/json; charset=utf-8';
const NOT_STORED = 'X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n';
const STORED = 'X-Content-Type-Options: nosniff\r\nCache-Control: private, no-cache\r\n';
/** The end of a head: the connection stays open, unused for at most `seconds`. */
export const endingFor = (seconds: number) => `Connection: keep-alive\r\nKeep-Alive: timeout=${seconds}\r\n\r\n`;

/** A reply to GET: it has an ETag. */
export type TaggedReply = Reply & { etag: string };

export const NO_CONTENT: Reply = { status: 204, headers: [], body: '' };

export function jsonReply(status: number, body: string, headers: string[] = []): Reply {
  return withBody(status, JSON_UTF_8, body, headers);
}

export function withBody(status: number, type: string, text: string, headers: string[] = []): Reply {
  const length = Buffer.byteLength(text);
  const body = length === text.length ? text : Buffer.from(text).toString('latin1');
  return { status, headers: ['Content-Type', type, 'Content-Length', String(length), ...headers], body };
}

export function errorReply({ code, message, headers }: Pick<ApiError, 'code' | 'message' | 'headers'>): Reply {
  const status = CATALOGUE[code];
  return jsonReply(status, JSON.stringify({ code, message, status }), headers);
}

/** A reply that will be sent more than once: its lines are put together now. */
export function prepared<R extends Reply>(reply: R): R {
  // Through a Buffer: V8 keeps concatenated strings as a tree (a rope), which would be walked each time it is sent.
  reply.lines = Buffer.from(linesOf(reply.headers), 'latin1').toString('latin1');
  return reply;
}

/** The head of a reply without the headers of the connection. */
function headOf({ status, headers, lines, etag }: Reply, { id, limits, date, extra }: About): string {
  const safety = etag === undefined ? NOT_STORED : STORED;
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nX-Request-Id: ${id}\r\n\
${limits}${safety}${lines ?? linesOf(headers)}${extra.length === 0 ? '' : linesOf(extra)}Date: ${date}\r\n`;
}

/** The head as a list for `writeHead`, which sends every reply that is not sent as one string. */
export function headersOf(reply: Reply, about: About): string[] {
  const [, ...lines] = headOf(reply, about).trimEnd().split('\r\n');
  return lines.flatMap((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]);
}

/** Headers as lines. Throws, as `writeHead` does, on a value that would not stay on its line (response splitting). */
function linesOf(headers: readonly string[]): string {
  let lines = '';
  for (let i = 0; i < headers.length; i += 2) {
    validateHeaderValue(headers[i], headers[i + 1]);
    lines += `${headers[i]}: ${headers[i + 1]}\r\n`;
  }
  return lines;
}

/** False if `sendRaw` has answered already. True otherwise, even if the client is gone and the reply lost. */
export function send(req: Incoming, res: Outgoing, reply: Reply, about: About): boolean {
  if (res.headersSent || (req.from.refusal === 'sent' && !req.complete)) return false;
  if (res.destroyed || req.from.socket.destroyed) return true; // `finish` will not come, so no bytes may be counted
  const body = req.method === 'HEAD' ? '' : reply.body;
  const isEarly = (!req.complete && !isEmpty(req)) || req.isCutShort;
  if (CAN_END_WHOLE && !isEarly && staysOpen(req, res, reply)) {
    const text = headOf(reply, about) + about.ending + body;
    req.from.countUnsent(res, text.length);
    endWhole(res, text);
    return true;
  }
  const headers = headersOf(reply, about);
  if (isEarly && isRestUnwanted(req) && !headers.includes('Connection')) headers.push('Connection', 'close');
  const hasLength = headers.includes('Content-Length') || req.httpVersionMinor === 1;
  if (!res.shouldKeepAlive || headers.includes('Connection') || !hasLength) req.from.isEnding = true;
  if (isEarly) req.discard();
  res.writeHead(reply.status, headers);
  req.from.countUnsent(res, headers.join().length + body.length);
  res.end(body, 'latin1');
  return true;
}

/** True for most replies: the connection stays open, and the client waits for nothing but the reply. */
function staysOpen(req: Incoming, res: Outgoing, reply: Reply): boolean {
  const isExpecting = req.headers.expect !== undefined;
  return res.shouldKeepAlive && req.httpVersionMinor === 1 && !isExpecting && !reply.headers.includes('Connection');
}

/**
 * True if the unread body is too large to drain, or may never come (`Expect`): then the connection ends. Otherwise the
 * body is read to its end, and the connection kept.
 */
function isRestUnwanted(req: Incoming): boolean {
  const length = Number(req.headers['content-length'] ?? Number.POSITIVE_INFINITY);
  return length > MAX_BODY_BYTES || expectOf(req) !== undefined;
}

/** Answers after a parse error, when nothing more can be read, and ends the connection. */
export function sendRaw(connection: Connection, reply: Reply, about: About): void {
  const close = reply.headers.includes('Connection') ? '' : 'Connection: close\r\n';
  connection.refusal = 'sent';
  connection.endGently();
  connection.socket.write(`${headOf(reply, about)}${close}\r\n${reply.body}`, 'latin1');
  connection.socket.destroySoon();
}
