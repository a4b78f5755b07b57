/** Reads a message beyond what node:http checks: its target, its query, its body. */
import type { IncomingMessage } from 'node:http';
import { allFaults, excerpt } from '../text.ts';
import { NO_BODY } from './body.ts';
import {
  ApiError,
  badRequest,
  bodyTooLarge,
  type HeaderList,
  headersTooLarge,
  MAX_BODY_BYTES,
  MAX_HEADER_PAIRS,
  MAX_TARGET_CHARS,
  otherVersion,
  uriTooLong,
} from './errors.ts';
import { CONTINUE, type Request } from './request.ts';

/** Methods of endpoints. OPTIONS is not among them: it is answered by the path alone. */
export const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
export const JSON_TYPE = 'application/json';

/** Headers that must not be repeated. */
const SINGLE = ['host', 'content-type', 'authorization', 'transfer-encoding'];
const WITHOUT_BODY = ['GET', 'HEAD', 'DELETE'];
const HOST = /^(?:[\w.~!$&'()*+,;=%-]*|\[[\da-fA-F:.]+\])(?::\d*)?$/;
const JSON_MEDIA_TYPE = /^application\/json[ \t]*(?:;[ \t]*(?:charset=(?:utf-8|"utf-8")[ \t]*)?)*$/i;

/** CONNECT has a target of its own form, and comes by an event of its own. */
export function connectRefusal(): ApiError {
  const allow = [...METHODS, 'OPTIONS'].join(', ');
  return new ApiError('method_not_allowed', 'CONNECT is not served here', ['Allow', allow], true);
}

/** The path of the target, and what follows its `?`. */
export function readTarget(request: Request): { path: string; query: string } {
  const target = originForm(request);
  const cut = target.indexOf('?');
  return cut === -1 ? { path: target, query: '' } : { path: target.slice(0, cut), query: target.slice(cut + 1) };
}

/** `http://host/path` is cut down to `/path` if `Host` names the same host. */
function originForm(request: Request): string {
  const target = request.url;
  if (target.startsWith('/')) return target;
  if (target === '*' && request.method === 'OPTIONS') return target;
  const absolute = /^https?:\/\/([^/?#]+)(.*)$/is.exec(target);
  if (absolute === null) throw badRequest('the request target must begin with /');
  if (absolute[1].toLowerCase() !== request.headers.host?.toLowerCase()) {
    throw badRequest('the host of the request target is not the one of the header Host');
  }
  return absolute[2].startsWith('/') ? absolute[2] : `/${absolute[2]}`;
}

/** Refuses messages that node:http accepts, though two readers of the same bytes may understand them differently. */
export function checkMessage(request: Request): void {
  if (request.message.httpVersionMajor !== 1) throw otherVersion();
  if (request.message.rawHeaders.length > 2 * MAX_HEADER_PAIRS) throw headersTooLarge();
  const { host, 'transfer-encoding': encoding } = request.headers;
  const twice = sentTwice(request.message);
  if (twice !== undefined) throw badRequest(`the header ${twice} was sent twice`);
  if (encoding !== undefined) {
    if (encoding !== 'chunked') throw badRequest('the only Transfer-Encoding supported is chunked');
    if (request.message.httpVersionMinor === 0) throw badRequest('HTTP/1.0 has no Transfer-Encoding');
  }
  if (host === undefined && request.message.httpVersionMinor === 1) throw badRequest('the header Host is missing');
  if (host !== undefined && !HOST.test(host)) {
    throw badRequest('the header Host is not a host name with an optional port');
  }
  if (!request.isEmpty && WITHOUT_BODY.includes(request.method)) {
    throw badRequest(`a ${request.method} request has no body`);
  }
}

/** A header of which node:http keeps the first, though another reader of the same bytes may take the second. */
function sentTwice({ rawHeaders, headers }: IncomingMessage): string | undefined {
  if (rawHeaders.length === 2 * Object.keys(headers).length) return undefined; // for speed: each header was sent once
  const seen = new Set<string>();
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index].toLowerCase();
    if (seen.has(name)) return rawHeaders[index];
    if (SINGLE.includes(name)) seen.add(name);
  }
  return undefined;
}

/** Checks the length of the target, and `Expect`. Under `/v1` that comes after the key and the limits. */
export function checkTargetAndExpect(request: Request): void {
  if (request.url.length > MAX_TARGET_CHARS) throw uriTooLong();
  if (request.expect !== undefined && request.expect !== CONTINUE) {
    throw new ApiError('expectation_failed', `the header Expect can only be ${CONTINUE}`, [], true);
  }
}

/** The whole body, as bytes. Throws if the headers show that it cannot be taken. */
export async function readBody(request: Request): Promise<Uint8Array> {
  if (WITHOUT_BODY.includes(request.method)) return NO_BODY;
  const { 'content-encoding': encoding, 'content-type': type = request.isEmpty ? JSON_TYPE : '' } = request.headers;
  if (encoding !== undefined) {
    const why = 'the header Content-Encoding is not supported: send the body as it is, without it';
    throw unsupported(request, why, ['Accept-Encoding', 'identity']);
  }
  if (!JSON_MEDIA_TYPE.test(type)) {
    const got = type === '' ? 'none was sent' : `got ${excerpt(type)}`;
    throw unsupported(request, `the header Content-Type must be ${JSON_TYPE} (${got})`);
  }
  if (Number(request.headers['content-length']) > MAX_BODY_BYTES) throw bodyTooLarge();
  if (request.expect !== undefined) request.res.writeContinue();
  return request.body();
}

function unsupported({ method }: Request, why: string, more: HeaderList = []): ApiError {
  const patch = method === 'PATCH' ? ['Accept-Patch', JSON_TYPE] : [];
  return new ApiError('unsupported_media_type', why, ['Accept', JSON_TYPE, ...patch, ...more]);
}

/** One parameter that an endpoint knows. */
export interface Parameter<T> {
  readonly name: string;
  /** For the message: what its text must be. */
  readonly mustBe: string;
  /** Undefined if the text is wrong. */
  parse(text: string): T | undefined;
}

export function limitUpTo(max: number): Parameter<number> {
  const values = new Map(Array.from({ length: max }, (_, index) => [`${index + 1}`, index + 1]));
  return { name: 'limit', mustBe: `a whole number from 1 to ${max}`, parse: (text) => values.get(text) };
}

export const enumParameter = <T extends string>(name: string, values: readonly T[]): Parameter<T> => ({
  name,
  mustBe: `one of ${values.join(', ')}`,
  parse: (text) => values.find((one) => one === text),
});

type Values<P extends readonly Parameter<unknown>[]> = {
  [Index in keyof P]: (P[Index] extends Parameter<infer T> ? T : never) | undefined;
};

/** The values of a query's parameters, in the order of `known`; undefined: it was not sent. Throws all faults at once. */
export function readQuery<const P extends readonly Parameter<unknown>[]>(query: string, known: P): Values<P> {
  const texts: (string | undefined)[] = known.map(() => undefined);
  const faults: string[] = [];
  for (let from = 0, to = 0; from < query.length; from = to + 1) {
    to = query.indexOf('&', from);
    if (to === -1) to = query.length;
    const part = query.slice(from, to);
    if (part === '') continue;
    const cut = part.indexOf('=');
    const name = decode(cut === -1 ? part : part.slice(0, cut));
    const text = decode(cut === -1 ? '' : part.slice(cut + 1));
    const index = known.findIndex((one) => one.name === name);
    if (name === undefined || text === undefined) faults.push(`${excerpt(part)}: is not percent-encoded UTF-8`);
    else if (index === -1) faults.push(`${excerpt(name)}: is unknown; ${namesOf(known)}`);
    else if (texts[index] !== undefined) faults.push(`${name}: is given twice`);
    else texts[index] = text;
  }
  const values = known.map(({ name, mustBe, parse }, index) => {
    const text = texts[index];
    if (text === undefined) return undefined;
    const value = parse(text);
    if (value === undefined) faults.push(`${name}: must be ${mustBe}`);
    return value;
  });
  if (faults.length > 0) throw new ApiError('invalid_parameter', allFaults(faults));
  return values as Values<P>;
}

const namesOf = (known: readonly Parameter<unknown>[]): string =>
  known.length === 0 ? 'no parameters are taken here' : `known are: ${known.map(({ name }) => name).join(', ')}`;

/** Refuses a query: the endpoint has no parameters. */
export function refuseParameters(query: string): void {
  if (query !== '') readQuery(query, []);
}

function decode(text: string): string | undefined {
  if (!text.includes('%') && !text.includes('+')) return text; // for speed
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}
