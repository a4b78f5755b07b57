/** The checks of a message that node:http leaves to us. */
import type { ServerResponse } from 'node:http';
import {
  ApiError,
  badRequest,
  bodyTooLarge,
  headersTooLarge,
  MAX_BODY_BYTES,
  MAX_HEADER_PAIRS,
  MAX_TARGET_CHARS,
  otherVersion,
  uriTooLong,
} from './errors.ts';
import { CONTINUE, type Incoming } from './request.ts';

/** Methods of endpoints. OPTIONS is not among them: it is answered by the path alone. */
export const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
const ALL_METHODS = [...METHODS, 'OPTIONS'].join(', ');
export const JSON_TYPE = 'application/json';

const WITHOUT_BODY = ['GET', 'HEAD', 'DELETE'];
const NOTHING = new Uint8Array(0);
const HOST = /^(?:[\w.~!$&'()*+,;=%-]*|\[[\da-fA-F:.]+\])(?::\d*)?$/;
const JSON_MEDIA_TYPE = /^application\/json[ \t]*(?:;[ \t]*(?:charset=(?:utf-8|"utf-8")[ \t]*)?)*$/i;

/** The target as a path with its query: `http://host/path` is cut down to `/path` if `Host` names the same host. */
export function originForm(req: Incoming): string {
  const target = req.url as string;
  if (req.method === 'CONNECT') {
    throw new ApiError('method_not_allowed', 'CONNECT is not served here', ['Allow', ALL_METHODS], true);
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
  if ((encoding !== undefined || length !== '0') && WITHOUT_BODY.includes(req.method as string)) {
    throw badRequest(`a ${req.method} request has no body`);
  }
}

/** Checks the length of the target, and `Expect`. Where a key is needed, the key and the limits are checked before. */
export function checkTargetAndExpect(req: Incoming): void {
  if ((req.url as string).length > MAX_TARGET_CHARS) throw uriTooLong();
  if (req.expect !== undefined && req.expect !== CONTINUE) {
    throw new ApiError('expectation_failed', `the header Expect can only be ${CONTINUE}`, [], true);
  }
}

/** The whole body, as bytes. Throws if the headers show that it cannot be taken. */
export async function readBody(req: Incoming, res: ServerResponse): Promise<Uint8Array> {
  if (WITHOUT_BODY.includes(req.method as string)) return NOTHING;
  const { 'content-encoding': encoding, 'content-type': type = req.isEmpty ? JSON_TYPE : '' } = req.headers;
  if (encoding !== undefined) {
    const why = 'the header Content-Encoding is not supported: send the body as it is, without it';
    throw unsupported(req, why, ['Accept-Encoding', 'identity']);
  }
  if (!JSON_MEDIA_TYPE.test(type)) throw unsupported(req, `the body must be ${JSON_TYPE}`);
  if (Number(req.headers['content-length']) > MAX_BODY_BYTES) throw bodyTooLarge();
  if (req.expect !== undefined) res.writeContinue();
  return req.body();
}

function unsupported({ method }: Incoming, why: string, more: readonly string[] = []): ApiError {
  const patch = method === 'PATCH' ? ['Accept-Patch', JSON_TYPE] : [];
  return new ApiError('unsupported_media_type', why, ['Accept', JSON_TYPE, ...patch, ...more]);
}
