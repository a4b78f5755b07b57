/** Reads a message beyond what node:http checks: its target, its query, its body. */
import { allFaults, excerpt } from '../text.ts';
import {
  ApiError,
  badRequest,
  bodyTooLarge,
  headersTooLarge,
  line,
  MAX_BODY_BYTES,
  MAX_HEADER_PAIRS,
  MAX_TARGET_CHARS,
  otherVersion,
  uriTooLong,
} from './errors.ts';
import { CONTINUE, type Incoming, NO_BODY } from './request.ts';

/** Methods of endpoints. OPTIONS is not among them: it is answered by the path alone. */
export const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
const ALL_METHODS = [...METHODS, 'OPTIONS'].join(', ');
export const JSON_TYPE = 'application/json';

const WITHOUT_BODY = ['GET', 'HEAD', 'DELETE'];
const HOST = /^(?:[\w.~!$&'()*+,;=%-]*|\[[\da-fA-F:.]+\])(?::\d*)?$/;
const JSON_MEDIA_TYPE = /^application\/json[ \t]*(?:;[ \t]*(?:charset=(?:utf-8|"utf-8")[ \t]*)?)*$/i;

/** The target as a path with its query: `http://host/path` is cut down to `/path` if `Host` names the same host. */
export function originForm(req: Incoming): string {
  const target = req.url;
  if (req.method === 'CONNECT') {
    throw new ApiError('method_not_allowed', 'CONNECT is not served here', line('Allow', ALL_METHODS), true);
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

/** Refuses messages that node:http accepts, though two readers of the same bytes may understand them differently. */
export function checkMessage(req: Incoming): void {
  if (req.httpVersionMajor !== 1) throw otherVersion();
  if (req.rawHeaders.length > 2 * MAX_HEADER_PAIRS) throw headersTooLarge();
  const { sentTwice, host, 'content-length': length = '0', 'transfer-encoding': encoding } = req.headers;
  if (sentTwice !== undefined) throw badRequest(`the header ${sentTwice} was sent twice`);
  if (encoding !== undefined) {
    if (encoding !== 'chunked') throw badRequest('the only Transfer-Encoding supported is chunked');
    if (req.httpVersionMinor === 0) throw badRequest('HTTP/1.0 has no Transfer-Encoding');
  }
  if (host === undefined && req.httpVersionMinor === 1) throw badRequest('the header Host is missing');
  if (host !== undefined && !HOST.test(host)) {
    throw badRequest('the header Host is not a host name with an optional port');
  }
  if ((encoding !== undefined || length !== '0') && WITHOUT_BODY.includes(req.method)) {
    throw badRequest(`a ${req.method} request has no body`);
  }
}

/** Checks the length of the target, and `Expect`. Where a key is needed, the key and the limits are checked before. */
export function checkTargetAndExpect(req: Incoming): void {
  if (req.url.length > MAX_TARGET_CHARS) throw uriTooLong();
  if (req.expect !== undefined && req.expect !== CONTINUE) {
    throw new ApiError('expectation_failed', `the header Expect can only be ${CONTINUE}`, '', true);
  }
}

/** The whole body, as bytes. Throws if the headers show that it cannot be taken. */
export async function readBody(req: Incoming): Promise<Uint8Array> {
  if (WITHOUT_BODY.includes(req.method)) return NO_BODY;
  const { 'content-encoding': encoding, 'content-type': type = req.isEmpty ? JSON_TYPE : '' } = req.headers;
  if (encoding !== undefined) {
    const why = 'the header Content-Encoding is not supported: send the body as it is, without it';
    throw unsupported(req, why, line('Accept-Encoding', 'identity'));
  }
  if (!JSON_MEDIA_TYPE.test(type)) {
    const got = type === '' ? 'none was sent' : `got ${excerpt(type)}`;
    throw unsupported(req, `the header Content-Type must be ${JSON_TYPE} (${got})`);
  }
  if (Number(req.headers['content-length']) > MAX_BODY_BYTES) throw bodyTooLarge();
  if (req.expect !== undefined) req.from.socket.write('HTTP/1.1 100 Continue\r\n\r\n');
  return req.body();
}

function unsupported({ method }: Incoming, why: string, more = ''): ApiError {
  const patch = method === 'PATCH' ? line('Accept-Patch', JSON_TYPE) : '';
  return new ApiError('unsupported_media_type', why, line('Accept', JSON_TYPE) + patch + more);
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
  const values = new Map(Array.from({ length: max }, (_, at) => [`${at + 1}`, at + 1]));
  return { name: 'limit', mustBe: `a whole number from 1 to ${max}`, parse: (text) => values.get(text) };
}

export const oneOf = <T extends string>(name: string, values: readonly T[]): Parameter<T> => ({
  name,
  mustBe: `one of ${values.join(', ')}`,
  parse: (text) => values.find((one) => one === text),
});

type Values<P extends readonly Parameter<unknown>[]> = {
  [At in keyof P]: (P[At] extends Parameter<infer T> ? T : never) | undefined;
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
    const at = known.findIndex((one) => one.name === name);
    if (name === undefined || text === undefined) faults.push(`${excerpt(part)}: is not percent-encoded UTF-8`);
    else if (at === -1) faults.push(`${excerpt(name)}: is unknown; ${namesOf(known)}`);
    else if (texts[at] !== undefined) faults.push(`${name}: is given twice`);
    else texts[at] = text;
  }
  const values = known.map(({ name, mustBe, parse }, at) => {
    const text = texts[at];
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
  if (!text.includes('%') && !text.includes('+')) return text;
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}
