/** Writes every response except those that the lab breaks: through node:http or, after a parse error, to the socket. */
import { STATUS_CODES, validateHeaderValue } from 'node:http';
import type { Connection, Outgoing } from './connection.ts';
import { type ApiError, CATALOGUE, MAX_BODY_BYTES } from './errors.ts';
import type { Incoming } from './messages.ts';
import { CAN_END_WHOLE, endWhole } from './private.ts';
import { expectOf, isEmpty } from './request.ts';

/**
 * A class, so that all replies have one shape: V8 finds a field of a known shape at once, and must search for it in an
 * object that was put together in another way.
 */
export class Reply<Etag extends string | undefined = string | undefined> {
  readonly status: number;
  /** Headers of this reply alone. Flat: name, value, name, value. */
  readonly headers: string[];
  /** The body, one character for each byte (`latin1`), so that head and body are sent as one string. */
  body: string;
  /** Present if the client may store this reply, and revalidate it. */
  readonly etag: Etag;
  /** The text of `headers`, if the reply is `prepared`. */
  lines: string | undefined = undefined;
  /** All that follows the Date when a prepared reply is sent as one string: made when it is first sent. */
  tail: string | undefined = undefined;
  /** The 304 that may be sent instead, made when it is first needed. */
  unchanged: Reply | undefined = undefined;

  constructor(status: number, headers: string[], body: string, etag: Etag) {
    this.status = status;
    this.headers = headers;
    this.body = body;
    this.etag = etag;
  }
}

/** The parts of a reply's head that depend on the request. */
export interface About {
  id: string;
  /** The header lines of the caller's limits, as they are sent. The text begins with the end of the line before. */
  limits: string;
  /** The header line `Date`, with its end. */
  date: string;
  /** The end of the head, made by `endingFor`. */
  ending: string;
  /** More headers, for instance those of the endpoint. */
  extra: readonly string[];
}

export const JSON_UTF_8 = 'application/json; charset=utf-8';
/** By status: the first line of a reply, and its next header up to the value. */
const STARTS: string[] = [];
const NOT_STORED = 'X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n';
const STORED = 'X-Content-Type-Options: nosniff\r\nCache-Control: private, no-cache\r\n';
/** The end of a head: the connection stays open, unused for at most `seconds`. */
export const endingFor = (seconds: number) => `Connection: keep-alive\r\nKeep-Alive: timeout=${seconds}\r\n\r\n`;

/** A reply to GET: it has an ETag. */
export type TaggedReply = Reply<string>;

export const NO_CONTENT = noContent();

export function noContent(headers: string[] = []): Reply {
  return new Reply(204, headers, '', undefined);
}

export function jsonReply(status: number, body: string, headers: string[] = []): Reply {
  return withBody(status, JSON_UTF_8, body, headers);
}

export function withBody(status: number, type: string, text: string, headers: string[] = []): Reply {
  const length = Buffer.byteLength(text);
  const body = length === text.length ? text : Buffer.from(text).toString('latin1');
  return new Reply(status, ['Content-Type', type, 'Content-Length', String(length), ...headers], body, undefined);
}

export function errorReply({ code, message, headers }: Pick<ApiError, 'code' | 'message' | 'headers'>): Reply {
  const status = CATALOGUE[code];
  return jsonReply(status, JSON.stringify({ code, message, status }), headers);
}

/** A reply that one App sends more than once: its lines are put together now, the rest when it is first sent. */
export function prepared<R extends Reply>(reply: R): R {
  reply.lines = flat(linesOf(reply.headers));
  return reply;
}

/** The same text in one piece: V8 keeps concatenated strings as a tree (a rope), which is walked for each sending. */
const flat = (latin1: string) => Buffer.from(latin1, 'latin1').toString('latin1');

/** The head of a reply without the headers of the connection. */
function headOf(reply: Reply, about: About): string {
  return beginningOf(reply.status, about) + linesAfterDate(reply);
}

/** The lines of the head that differ from one reply to the next. */
function beginningOf(status: number, { id, limits, date, extra }: About): string {
  const start = (STARTS[status] ??= `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nX-Request-Id: `);
  return start + id + limits + (extra.length === 0 ? '' : linesOf(extra)) + date;
}

function linesAfterDate({ headers, lines, etag }: Reply): string {
  return (etag === undefined ? NOT_STORED : STORED) + (lines ?? linesOf(headers));
}

/** A whole reply, whose connection stays open. */
function textOf(req: Incoming, reply: Reply, about: About): string {
  const beginning = beginningOf(reply.status, about);
  if (req.method === 'HEAD') return beginning + linesAfterDate(reply) + about.ending;
  if (reply.tail !== undefined) return beginning + reply.tail;
  const tail = linesAfterDate(reply) + about.ending + reply.body;
  if (reply.lines !== undefined) {
    reply.tail = flat(tail);
    reply.body = reply.tail.slice(tail.length - reply.body.length); // a part of that string, so it is in memory once
  }
  return beginning + tail;
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
    const text = textOf(req, reply, about);
    req.from.countUnsent(res, text.length);
    endWhole(res, text);
    return true;
  }
  const headers = headersOf(reply, about);
  if (isEarly && isRestUnwanted(req) && !headers.includes('Connection')) headers.push('Connection', 'close');
  res.writeHead(reply.status, headers); // this decides `shouldKeepAlive` where the client waits for a 100 Continue
  const hasLength = headers.includes('Content-Length') || req.httpVersionMinor === 1;
  if (!res.shouldKeepAlive || headers.includes('Connection') || !hasLength) req.from.isEnding = true;
  if (isEarly) req.discard();
  req.from.countUnsent(res, headers.join().length + body.length);
  res.end(body, 'latin1');
  return true;
}

/** True for most replies: the connection stays open, and the request came without `Expect`. */
function staysOpen(req: Incoming, res: Outgoing, reply: Reply): boolean {
  const isExpecting = req.headers.expect !== undefined;
  const isPersistent = res.shouldKeepAlive && req.httpVersionMinor === 1 && !isExpecting;
  return isPersistent && (reply.tail !== undefined || !reply.headers.includes('Connection'));
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
  connection.socket.write(`${headOf(reply, about)}${close}\r\n${reply.body}`, 'latin1');
  connection.socket.destroySoon();
}
