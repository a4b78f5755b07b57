/** Replies, and the one place that writes them to a client. */
import { STATUS_CODES } from 'node:http';
import { type ApiError, CATALOGUE, line } from './errors.ts';
import type { Incoming } from './request.ts';

export class Reply {
  readonly status: number;
  /** Whole lines, as `line` makes them. No value holds text of a client, so none can break out of its line. */
  readonly headers: string;
  /** One character for each byte (`latin1`), so that head and body are sent as one string. */
  readonly body: string;
  /** A large body that many clients get: one buffer for all, so that slow readers cost no copy each. `body` is then empty. */
  readonly bytes: Buffer | undefined;
  /** Present if the client may store this reply, and revalidate it. */
  readonly etag: string | undefined;
  /** The connection ends with it. */
  readonly isLast: boolean;
  #tail: string | undefined = undefined;
  #end = '';
  #isFlat = false;

  constructor(status: number, headers: string, body: string | Buffer = '', etag?: string, isLast = false) {
    this.status = status;
    this.headers = headers;
    this.body = typeof body === 'string' ? body : '';
    this.bytes = typeof body === 'string' ? undefined : body;
    this.etag = etag;
    this.isLast = isLast;
  }

  /** The headers as lines, with those that all replies have. */
  get lines(): string {
    return (this.etag === undefined ? NOT_STORED : STORED) + this.headers;
  }

  /**
   * All that follows `headOf`: the rest of the head, which closes with `end`, and the body. From the second time on it is
   * one flat string, since a reply that is kept and sent again is then written faster.
   */
  tail(end: string): string {
    if (this.#tail === undefined || end !== this.#end) {
      [this.#tail, this.#end, this.#isFlat] = [this.lines + end + this.body, end, false];
    } else if (!this.#isFlat) {
      [this.#tail, this.#isFlat] = [Buffer.from(this.#tail, 'latin1').toString('latin1'), true];
    }
    return this.#tail;
  }

  /** The same reply with one more header. */
  with(name: string, value: string): Reply {
    return new Reply(this.status, this.headers + line(name, value), this.bytes ?? this.body, this.etag, this.isLast);
  }

  /** The same reply, as the last of its connection. */
  asLast(): Reply {
    return new Reply(this.status, this.headers, this.bytes ?? this.body, this.etag, true);
  }
}

export const JSON_UTF_8 = 'application/json; charset=utf-8';

/** Text as latin1 characters, one for each byte of its UTF-8. */
export const asBytes = (text: string): string =>
  Buffer.byteLength(text) === text.length ? text : Buffer.from(text).toString('latin1');

/** `body`: as `Reply.body` or `Reply.bytes`. */
export function bytesReply(status: number, type: string, body: string | Buffer, headers = '', etag?: string) {
  const tag = etag === undefined ? '' : line('ETag', etag);
  return new Reply(status, `Content-Type: ${type}\r\nContent-Length: ${body.length}\r\n${headers}${tag}`, body, etag);
}

export const jsonReply = (status: number, text: string, headers = ''): Reply =>
  bytesReply(status, JSON_UTF_8, asBytes(text), headers);

export function errorReply({ code, message, headers, endsConnection }: ApiError): Reply {
  const status = CATALOGUE[code];
  const text = `{"code":"${code}","message":${JSON.stringify(message)},"status":${status}}`;
  const reply = jsonReply(status, text, headers);
  return endsConnection ? reply.asLast() : reply;
}

/** The parts of a head that depend on the request. */
export interface About {
  readonly id: string;
  /** Whole lines, as are `date` and `extra`. */
  readonly limits: string;
  readonly date: string;
  /** For instance the headers of the endpoint. */
  readonly extra: string;
  /** The end of the head if the connection stays open. */
  readonly keepAlive: string;
}

export const CLOSE = 'Connection: close\r\n\r\n';
const NOT_STORED = 'X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n';
const STORED = 'X-Content-Type-Options: nosniff\r\nCache-Control: private, no-cache\r\n';
const START_LINES: string[] = [];

/** The status line, and the headers that differ by request. `Reply.tail` follows. */
export function headOf(status: number, { id, limits, extra, date }: About): string {
  const start = (START_LINES[status] ??= `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nX-Request-Id: `);
  return `${start}${id}\r\n${limits}${extra}${date}`;
}

/**
 * The least that node:http asks of a response. Its own is a stream and an EventEmitter, and to make and end one takes a
 * tenth of the CPU of a list. A reply is written straight to the socket.
 */
export class Outgoing {
  /** Set by node:http: whether the client will use the connection again. */
  shouldKeepAlive = true;
  readonly #listeners: (() => void)[] = [];

  /** node:http goes on with the next request at this event. */
  on(_: 'finish', listener: () => void): void {
    this.#listeners.push(listener);
  }

  finish(): void {
    for (const listener of this.#listeners) listener();
  }

  /** Called by node:http when it lets go of the response. */
  emit(): void {}

  assignSocket(socket: { _httpMessage: unknown }): void {
    socket._httpMessage = this;
  }

  detachSocket(socket: { _httpMessage: unknown }): void {
    socket._httpMessage = null;
  }

  /** Called if the connection is closed before its turn. */
  destroy(): void {}
}

/** Writes the reply, unless the connection was ended meanwhile. Resolves when the kernel has taken it all, or the connection is closed. */
export function send(req: Incoming, res: Outgoing, reply: Reply, about: About) {
  const connection = req.from;
  const isLast = reply.isLast || req.isLast || connection.isLastOfDrain || !res.shouldKeepAlive;
  const { socket } = connection;
  connection.isEnding ||= isLast;
  req.discard();
  if (connection.isOver) return;
  const end = isLast ? CLOSE : about.keepAlive;
  const tail = req.method === 'HEAD' ? reply.lines + end : reply.tail(end);
  socket.write(headOf(reply.status, about) + tail, 'latin1');
  if (reply.bytes !== undefined && req.method !== 'HEAD') socket.write(reply.bytes);
  if (!isLast && socket.writableLength > 0) {
    // When all is written: node:http ends the socket of a client that has half-closed once no response is under way.
    return new Promise<void>((resolve) => socket.write('', () => resolve(res.finish())));
  }
  res.finish();
  if (isLast) connection.end();
}
