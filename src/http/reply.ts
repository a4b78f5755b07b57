/** Replies, and how they are written. */
import { STATUS_CODES } from 'node:http';
import { type ApiError, CATALOGUE, type HeaderList } from './errors.ts';

export interface Reply {
  readonly status: number;
  /** No value holds text of a client, so none can break out of its line. */
  readonly headers: HeaderList;
  /** A string has one character for each byte (`latin1`). A large body that many clients get is one buffer for all. */
  readonly body: string | Buffer;
  /** The connection ends with it. */
  readonly isLast: boolean;
}

export const JSON_UTF_8 = 'application/json; charset=utf-8';
/** Headers of every reply. */
export const SAFE: HeaderList = ['X-Content-Type-Options', 'nosniff', 'Cache-Control', 'no-store'];
export const CLOSE: HeaderList = ['Connection', 'close'];

/** Text as latin1 characters, one for each byte of its UTF-8. */
export const asBytes = (text: string): string =>
  Buffer.byteLength(text) === text.length ? text : Buffer.from(text).toString('latin1');

/** `body`: as `Reply.body`. */
export function bytesReply(
  status: number,
  type: string,
  body: string | Buffer,
  headers: HeaderList = [],
  isLast = false,
): Reply {
  return { status, headers: ['Content-Type', type, 'Content-Length', `${body.length}`, ...headers], body, isLast };
}

export const jsonReply = (status: number, json: string, headers?: HeaderList): Reply =>
  bytesReply(status, JSON_UTF_8, asBytes(json), headers);

/** 204, or another status without a body. */
export const emptyReply = (status: number, headers: HeaderList = []): Reply => {
  return { status, headers, body: '', isLast: false };
};

export function errorReply({ code, message, headers, endsConnection }: ApiError): Reply {
  const status = CATALOGUE[code];
  const text = `{"code":"${code}","message":${JSON.stringify(message)},"status":${status}}`;
  return bytesReply(status, JSON_UTF_8, asBytes(text), headers, endsConnection);
}

/** The whole reply to what is no request, as latin1: node:http has no response to write it to. */
export function rawReply({ status, headers, body }: Reply): string {
  const all = [...headers, 'Date', new Date().toUTCString(), ...CLOSE];
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n`;
  for (let index = 0; index < all.length; index += 2) head += `${all[index]}: ${all[index + 1]}\r\n`;
  return `${head}\r\n${body}`;
}
