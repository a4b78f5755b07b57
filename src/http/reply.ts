/** Replies, and the one place that writes them to a client. */
import { STATUS_CODES } from 'node:http';
import { type ApiError, CATALOGUE, type HeaderList } from './errors.ts';
import type { Request } from './request.ts';

export class Reply {
  readonly status: number;
  /** No value holds text of a client, so none can break out of its line. */
  readonly headers: HeaderList;
  /** A string has one character for each byte (`latin1`). A large body that many clients get is one buffer for all. */
  readonly body: string | Buffer;
  /** The connection ends with it. */
  readonly isLast: boolean;

  constructor(status: number, headers: HeaderList, body: string | Buffer = '', isLast = false) {
    this.status = status;
    this.headers = headers;
    this.body = body;
    this.isLast = isLast;
  }

  /** The same reply with one more header. */
  with(name: string, value: string): Reply {
    return new Reply(this.status, [...this.headers, name, value], this.body, this.isLast);
  }

  /** The value of a header, which is written as `name` is. */
  header(name: string): string | undefined {
    const index = this.headers.indexOf(name);
    return index === -1 ? undefined : this.headers[index + 1];
  }
}

export const JSON_UTF_8 = 'application/json; charset=utf-8';

/** Text as latin1 characters, one for each byte of its UTF-8. */
export const asBytes = (text: string): string =>
  Buffer.byteLength(text) === text.length ? text : Buffer.from(text).toString('latin1');

/** `body`: as `Reply.body`. */
export function bytesReply(
  status: number,
  type: string,
  body: string | Buffer,
  headers: HeaderList = [],
  isLast?: boolean,
): Reply {
  return new Reply(status, ['Content-Type', type, 'Content-Length', `${body.length}`, ...headers], body, isLast);
}

export const jsonReply = (status: number, text: string, headers?: HeaderList): Reply =>
  bytesReply(status, JSON_UTF_8, asBytes(text), headers);

export function errorReply({ code, message, headers, endsConnection }: ApiError): Reply {
  const status = CATALOGUE[code];
  const text = `{"code":"${code}","message":${JSON.stringify(message)},"status":${status}}`;
  return bytesReply(status, JSON_UTF_8, asBytes(text), headers, endsConnection);
}

const CLOSE = ['Connection', 'close'];
const SAFE = ['X-Content-Type-Options', 'nosniff', 'Cache-Control', 'no-store'];

/** `about`: the headers that depend on the request. */
const headersOf = ({ headers }: Reply, about: HeaderList, end: HeaderList): string[] => [
  ...about,
  ...SAFE,
  ...headers,
  ...end,
];

/** Writes the reply, unless the connection was ended meanwhile. `keepAlive`: headers if the connection stays open. */
export function send(request: Request, reply: Reply, about: HeaderList, keepAlive: HeaderList): void {
  const { res, connection, method } = request;
  const { status, body } = reply;
  const isLast = reply.isLast || request.isLast || connection.isAtLast;
  request.discard();
  if (connection.state === 'over') return;
  const hasBody = body.length > 0 && method !== 'HEAD';
  res.writeHead(status, headersOf(reply, about, isLast ? CLOSE : keepAlive));
  if (!isLast) {
    res.end(hasBody ? body : '', 'latin1');
    return;
  }
  if (hasBody) res.write(body, 'latin1');
  else res.flushHeaders();
  connection.end(res);
}

/** The whole reply to what is no request: there is no response to write it to. */
export function rawReply(reply: Reply, about: HeaderList): string {
  const headers = headersOf(reply, about, ['Date', new Date().toUTCString(), ...CLOSE]);
  let head = `HTTP/1.1 ${reply.status} ${STATUS_CODES[reply.status]}\r\n`;
  for (let index = 0; index < headers.length; index += 2) head += `${headers[index]}: ${headers[index + 1]}\r\n`;
  return `${head}\r\n${reply.body}`;
}
