/** What is read of a request: its target, its query, its body. And the checks node:http leaves to us. */
import type { IncomingMessage } from 'node:http';
import type { Outgoing } from './connection.ts';
import { ApiError, badRequest, bodyTooLarge, MAX_BODY_BYTES } from './errors.ts';
import type { Incoming } from './messages.ts';

const MAX_HEADER_PAIRS = 100;
export const MAX_TARGET_CHARS = 2_048;
const MAX_SHOWN_CHARS = 40;

const CONTINUE = '100-continue';
const HOST = /^(?:[\w.~!$&'()*+,;=%-]*|\[[\da-fA-F:.]+\])(?::\d*)?$/;
const JSON_TYPE = 'application/json';
const JSON_MEDIA_TYPE = /^application\/json[ \t]*(?:;[ \t]*(?:charset=(?:utf-8|"utf-8")[ \t]*)?)*$/i;

/**
 * Refuses what node:http lets pass though two readers of the same bytes may understand them differently.
 * One pass over the raw headers, since `req.headers` has already dropped or joined what was sent twice.
 */
export function checkMessage(req: IncomingMessage): void {
  const raw = req.rawHeaders;
  if (req.httpVersionMajor !== 1) throw badRequest('only HTTP/1.0 and HTTP/1.1 are spoken here');
  if (raw.length > 2 * MAX_HEADER_PAIRS) {
    throw new ApiError('headers_too_large', `at most ${MAX_HEADER_PAIRS} headers are taken`, ['Connection', 'close']);
  }
  let [host, type, authorization, encoding]: (string | undefined)[] = [];
  let length = '0';
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i];
    const value = raw[i + 1];
    // Five lengths pick out the headers that matter; only those are folded and compared.
    if (name.length === 4 && name.toLowerCase() === 'host') host = single('Host', host, value);
    else if (name.length === 12 && name.toLowerCase() === 'content-type') type = single('Content-Type', type, value);
    else if (name.length === 14 && name.toLowerCase() === 'content-length') length = value;
    else if (name.length === 13 && name.toLowerCase() === 'authorization') {
      authorization = single('Authorization', authorization, value);
    } else if (name.length === 17 && name.toLowerCase() === 'transfer-encoding') {
      encoding = single('Transfer-Encoding', encoding, value);
      if (encoding !== 'chunked') throw badRequest('the only Transfer-Encoding taken is: chunked');
    }
  }
  if (encoding !== undefined && req.httpVersionMinor === 0) throw badRequest('HTTP/1.0 has no Transfer-Encoding');
  if (host === undefined && req.httpVersionMinor === 1) throw badRequest('the header Host is missing');
  if (host !== undefined && !HOST.test(host))
    throw badRequest('the header Host is not a host name with an optional port');
  if ((encoding !== undefined || length !== '0') && (req.method === 'GET' || req.method === 'HEAD')) {
    throw badRequest(`a ${req.method} request has no body`);
  }
}

function single(name: string, before: string | undefined, value: string): string {
  if (before !== undefined) throw badRequest(`the header ${name} was sent twice`);
  return value;
}

/** The target as a path with its query: `http://host/path` is cut down to `/path` where the host is the Host. */
export function originForm(req: IncomingMessage): string {
  const target = req.url as string;
  if (target.charCodeAt(0) === 47 /* / */) return target;
  if (target === '*' && req.method === 'OPTIONS') return target;
  const absolute = /^https?:\/\/([^/?#]+)(.*)$/i.exec(target);
  if (absolute === null) throw badRequest('the request target must begin with /');
  if (absolute[1].toLowerCase() !== req.headers.host?.toLowerCase()) {
    throw badRequest('the host of the request target is not the one of the header Host');
  }
  return absolute[2].startsWith('/') ? absolute[2] : `/${absolute[2]}`;
}

/** What stands to be refused once the caller is known and within its limits. */
export function checkDemands(req: IncomingMessage): void {
  if ((req.url as string).length > MAX_TARGET_CHARS) {
    throw new ApiError('uri_too_long', `the request target may have at most ${MAX_TARGET_CHARS} characters`);
  }
  const expect = expectOf(req);
  if (expect !== undefined && expect.toLowerCase() !== CONTINUE) {
    throw new ApiError('expectation_failed', `the only expectation met is: ${CONTINUE}`);
  }
}

/** What the client waits for. `100-continue` a server must pass over in HTTP/1.0 (RFC 9110, 10.1.1). */
export function expectOf(req: IncomingMessage): string | undefined {
  const { expect } = req.headers;
  return req.httpVersionMinor === 0 && expect?.toLowerCase() === CONTINUE ? undefined : expect;
}

/** The whole body, as bytes; refused as soon as it is known to be too long. */
export function readBody(req: Incoming, res: Outgoing): Promise<Uint8Array> {
  const { headers } = req;
  if (headers['content-encoding'] !== undefined) throw unsupported('no Content-Encoding is taken');
  const type = headers['content-type'] ?? (isEmpty(req) ? JSON_TYPE : '');
  if (!JSON_MEDIA_TYPE.test(type)) throw unsupported(`the body must be ${JSON_TYPE}`);
  if (Number(headers['content-length']) > MAX_BODY_BYTES) throw bodyTooLarge();
  if (expectOf(req) !== undefined) res.writeContinue();
  return req.body();
}

/** Then no type is missed: that nothing is no JSON either, the reader says. */
export function isEmpty({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0;
}

function unsupported(why: string): ApiError {
  return new ApiError('unsupported_media_type', why, ['Accept', JSON_TYPE]);
}

/** A query's parameters. Whoever reads them adds what is wrong with their values, so that all of it is told at once. */
export class Query {
  readonly #parameters = new Map<string, string>();
  readonly #faults: string[] = [];

  /** Notes every unknown name, repetition and bad encoding. */
  constructor(query: string, allowed: readonly string[]) {
    for (const part of query.split('&')) {
      if (part === '') continue;
      const cut = part.indexOf('=');
      const name = decode(cut === -1 ? part : part.slice(0, cut));
      const value = decode(cut === -1 ? '' : part.slice(cut + 1));
      if (name === undefined || value === undefined) this.refuse(shown(part), 'is not percent-encoded UTF-8');
      else if (!allowed.includes(name)) this.refuse(shown(name), unknownParameter(allowed));
      else if (this.#parameters.has(name)) this.refuse(name, 'is given twice');
      else this.#parameters.set(name, value);
    }
  }

  get(name: string): string | undefined {
    return this.#parameters.get(name);
  }

  refuse(name: string, why: string): void {
    this.#faults.push(`${name}: ${why}`);
  }

  /** Throws if anything was refused. */
  end(): void {
    if (this.#faults.length > 0) throw new ApiError('invalid_parameter', this.#faults.join('; '));
  }
}

/** For operations without parameters. */
export function refuseParameters(query: string): void {
  if (query !== '') new Query(query, []).end();
}

function unknownParameter(allowed: readonly string[]): string {
  return `is unknown; ${allowed.length === 0 ? 'no parameters are taken here' : `known are: ${allowed.join(', ')}`}`;
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}

/** A name as the client sent it, fit for a message: quoted, and not longer than a person wants to read. */
function shown(text: string): string {
  return JSON.stringify(text.length > MAX_SHOWN_CHARS ? `${text.slice(0, MAX_SHOWN_CHARS)}…` : text);
}
