/** Reads the target, the query and the body of a request, and makes the checks that node:http leaves to us. */
import { allFaults, excerpt } from '../quoting.ts';
import type { Outgoing } from './connection.ts';
import {
  ApiError,
  badRequest,
  bodyTooLarge,
  headersTooLarge,
  MAX_BODY_BYTES,
  MAX_HEADER_PAIRS,
  otherVersion,
} from './errors.ts';
import type { Incoming } from './messages.ts';

/**
 * node:http drops headers beyond this number: in memory, two thousand of the shortest would take some ten times their
 * bytes. The number is above our own maximum, so no request that is served has lost a header.
 */
export const MAX_PARSED_HEADERS = MAX_HEADER_PAIRS + 28;
const MAX_TARGET_CHARS = 2_048;

/** Methods of endpoints. OPTIONS is not among them: it is answered by the path alone. */
export const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH'] as const;
export const ALL_METHODS = [...METHODS, 'OPTIONS'].join(', ');
const CONTINUE = '100-continue';
const HOST = /^(?:[\w.~!$&'()*+,;=%-]*|\[[\da-fA-F:.]+\])(?::\d*)?$/;
export const JSON_TYPE = 'application/json';
const JSON_MEDIA_TYPE = /^application\/json[ \t]*(?:;[ \t]*(?:charset=(?:utf-8|"utf-8")[ \t]*)?)*$/i;

/**
 * Prevents request smuggling: refuses messages that node:http accepts, though two readers of the same bytes may
 * understand them differently.
 */
export function checkMessage(req: Incoming): void {
  if (req.httpVersionMajor !== 1) throw otherVersion();
  if (req.rawHeaders.length > 2 * MAX_HEADER_PAIRS) throw headersTooLarge();
  const { sentTwice, host, 'content-length': length = '0', 'transfer-encoding': encoding } = req.headers;
  if (sentTwice !== undefined) throw badRequest(`the header ${sentTwice} was sent twice`);
  if (encoding !== undefined && encoding !== 'chunked')
    throw badRequest('the only Transfer-Encoding supported is chunked');
  if (encoding !== undefined && req.httpVersionMinor === 0) throw badRequest('HTTP/1.0 has no Transfer-Encoding');
  if (host === undefined && req.httpVersionMinor === 1) throw badRequest('the header Host is missing');
  if (host !== undefined && !HOST.test(host))
    throw badRequest('the header Host is not a host name with an optional port');
  if ((encoding !== undefined || length !== '0') && (req.method === 'GET' || req.method === 'HEAD')) {
    throw badRequest(`a ${req.method} request has no body`);
  }
}

/** The target as a path with its query: `http://host/path` is cut down to `/path` if `Host` names the same host. */
export function originForm(req: Incoming): string {
  const target = req.url as string;
  if (req.method === 'CONNECT') {
    throw new ApiError('method_not_allowed', 'CONNECT is not served here', ['Allow', ALL_METHODS]);
  }
  if (target.charCodeAt(0) === 47 /* / */) return target;
  if (target === '*' && req.method === 'OPTIONS') return target;
  const absolute = /^https?:\/\/([^/?#]+)(.*)$/is.exec(target);
  if (absolute === null) throw badRequest('the request target must begin with /');
  if (absolute[1].toLowerCase() !== req.headers.host?.toLowerCase()) {
    throw badRequest('the host of the request target is not the one of the header Host');
  }
  return absolute[2].startsWith('/') ? absolute[2] : `/${absolute[2]}`;
}

/** Checks the length of the target, and `Expect`. Where a key is needed, the key and the limits are checked before. */
export function checkTargetAndExpect(req: Incoming): void {
  if ((req.url as string).length > MAX_TARGET_CHARS) throw uriTooLong();
  const expect = expectOf(req);
  if (expect !== undefined && expect.toLowerCase() !== CONTINUE) {
    throw new ApiError('expectation_failed', `the header Expect can only be ${CONTINUE}`, ['Connection', 'close']);
  }
}

export function uriTooLong(): ApiError {
  return new ApiError('uri_too_long', `the request target may have at most ${MAX_TARGET_CHARS} characters`);
}

/** The `Expect` header. In HTTP/1.0 a server must ignore `100-continue` (RFC 9110, 10.1.1). */
export function expectOf(req: Incoming): string | undefined {
  const { expect } = req.headers;
  return req.httpVersionMinor === 0 && expect?.toLowerCase() === CONTINUE ? undefined : expect;
}

/** The whole body, as bytes. Throws if the headers show that it cannot be taken; rejects as `Incoming.body` does. */
export function readBody(req: Incoming, res: Outgoing): Promise<Uint8Array> {
  const { headers } = req;
  if (headers['content-encoding'] !== undefined)
    throw unsupported(req, 'the header Content-Encoding is not supported: send the body as it is, without it', [
      'Accept-Encoding',
      'identity',
    ]);
  const type = headers['content-type'] ?? (isEmpty(req) ? JSON_TYPE : '');
  if (!JSON_MEDIA_TYPE.test(type)) throw unsupported(req, `the body must be ${JSON_TYPE}`);
  if (Number(headers['content-length']) > MAX_BODY_BYTES) throw bodyTooLarge();
  if (expectOf(req) !== undefined) res.writeContinue();
  return req.body();
}

/** True if a request has no body. Then it need not say a type: the JSON reader will refuse the empty text. */
export function isEmpty({ headers }: Incoming): boolean {
  return headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0;
}

function unsupported({ method }: Incoming, why: string, more: string[] = []): ApiError {
  const patch = method === 'PATCH' ? ['Accept-Patch', JSON_TYPE] : [];
  return new ApiError('unsupported_media_type', why, ['Accept', JSON_TYPE, ...patch, ...more]);
}

/** A query's parameters. Faults are gathered, and `end` throws them all at once. */
export class Query {
  readonly #parameters = new Map<string, string>();
  readonly #faults: string[] = [];

  constructor(query: string, allowed: readonly string[]) {
    const known = allowed.length === 0 ? 'no parameters are taken here' : `known are: ${allowed.join(', ')}`;
    for (const part of query.match(/[^&]+/g) ?? []) {
      const cut = part.indexOf('=');
      const name = decode(cut === -1 ? part : part.slice(0, cut));
      const value = decode(cut === -1 ? '' : part.slice(cut + 1));
      if (name === undefined || value === undefined)
        this.#faults.push(`${excerpt(part)}: is not percent-encoded UTF-8`);
      else if (!allowed.includes(name)) this.#faults.push(`${excerpt(name)}: is unknown; ${known}`);
      else if (this.#parameters.has(name)) this.#faults.push(`${name}: is given twice`);
      else this.#parameters.set(name, value);
    }
  }

  /** The parameter, converted; undefined if it was not sent or is wrong (`convert` gave undefined). */
  read<T>(name: string, convert: (text: string) => T | undefined, mustBe: string): T | undefined {
    const text = this.#parameters.get(name);
    const value = text === undefined ? undefined : convert(text);
    if (text !== undefined && value === undefined) this.#faults.push(`${name}: must be ${mustBe}`);
    return value;
  }

  /** The `limit` parameter: from 1 to `max`. */
  readLimit(max: number, fallback: number): number {
    const convert = (text: string) => (/^[1-9]\d{0,5}$/.test(text) && Number(text) <= max ? Number(text) : undefined);
    return this.read('limit', convert, `a whole number from 1 to ${max}`) ?? fallback;
  }

  end(): void {
    if (this.#faults.length > 0) throw new ApiError('invalid_parameter', allFaults(this.#faults));
  }
}

/** Refuses a query: the endpoint has no parameters. */
export function refuseParameters(query: string): void {
  if (query !== '') new Query(query, []).end();
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}
