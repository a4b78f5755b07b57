/** Replies, and how they are written. */
import { STATUS_CODES } from 'node:http';
import { type ApiError, CATALOGUE, type HeaderList } from './errors.ts';

export interface Reply {
  readonly status: number;
  /** No value holds text of a client, so none can break out of its line. */
  readonly headers: string[];
  /** A large body that many clients get is one buffer for all. */
  readonly body: string | Buffer;
  /** True: the connection ends with it. */
  readonly isLast: boolean;
}

export const JSON_UTF_8 = 'application/json; charset=utf-8';
/** Headers of every reply. */
export const SAFE: HeaderList = ['X-Content-Type-Options', 'nosniff', 'Cache-Control', 'no-store'];
export const CLOSE: HeaderList = ['Connection', 'close'];

export function replyWith(
  status: number,
  type: string,
  body: Reply['body'],
  more: HeaderList = [],
  isLast = false,
): Reply {
  const length = `${Buffer.byteLength(body)}`;
  return { status, headers: ['Content-Type', type, 'Content-Length', length, ...more], body, isLast };
}

export const jsonReply = (status: number, json: string, headers?: HeaderList): Reply =>
  replyWith(status, JSON_UTF_8, json, headers);

export const noContent = (headers: string[] = []): Reply => ({ status: 204, headers, body: '', isLast: false });

export function errorReply({ code, message, headers, endsConnection }: ApiError): Reply {
  const status = CATALOGUE[code];
  const text = `{"code":"${code}","message":${JSON.stringify(message)},"status":${status}}`;
  return replyWith(status, JSON_UTF_8, text, headers, endsConnection);
}

/** The whole reply to what is no request: node:http has no response to write it to. */
export function rawReply({ status, headers, body }: Reply): string {
  const all = [...headers, 'Date', new Date().toUTCString(), ...CLOSE];
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n`;
  for (let index = 0; index < all.length; index += 2) head += `${all[index]}: ${all[index + 1]}\r\n`;
  return `${head}\r\n${body}`;
}
