/** Reads the head of a request beyond what node:http checks. */
import type { IncomingMessage } from 'node:http';
import {
  ApiError,
  badRequest,
  headersTooLarge,
  MAX_HEADER_PAIRS,
  MAX_TARGET_CHARS,
  OTHER_VERSION,
  uriTooLong,
} from './errors.ts';

/** Methods of endpoints. OPTIONS is not among them: it is answered by the path alone. */
export const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
export const WITHOUT_BODY = ['GET', 'HEAD', 'DELETE'];
/** Headers of which node:http keeps the first, though another reader of the same bytes may take the second. */
const SINGLE = ['host', 'content-type', 'authorization', 'transfer-encoding'];
const CONTINUE = '100-continue';
const HOST = /^(?:[\w.~!$&'()*+,;=%-]*|\[[\da-fA-F:.]+\])(?::\d*)?$/;

export const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;

/** For headers whose lines node:http joins if they are repeated. */
export const header = ({ headers }: IncomingMessage, name: string) => headers[name] as string | undefined;

/** The path of the target, and what follows its `?`. */
export function readTarget(req: IncomingMessage): { path: string; query: string } {
  const target = originForm(req);
  const cut = target.indexOf('?');
  return cut === -1 ? { path: target, query: '' } : { path: target.slice(0, cut), query: target.slice(cut + 1) };
}

/** `http://host/path` is cut down to `/path` if `Host` names the same host. */
function originForm({ url: target = '', headers }: IncomingMessage): string {
  if (target.startsWith('/')) return target;
  const absolute = /^https?:\/\/([^/?#]+)(.*)$/is.exec(target);
  if (absolute === null) throw badRequest('the request target must begin with /');
  if (absolute[1].toLowerCase() !== headers.host?.toLowerCase()) {
    throw badRequest('the host of the request target is not the one of the header Host');
  }
  return absolute[2].startsWith('/') ? absolute[2] : `/${absolute[2]}`;
}

/** Refuses messages that node:http accepts, though two readers of the same bytes may understand them differently. */
export function checkMessage(req: IncomingMessage): void {
  const { host, 'transfer-encoding': encoding } = req.headers;
  const isOld = req.httpVersionMinor === 0;
  if (req.httpVersionMajor !== 1) throw badRequest(OTHER_VERSION);
  if (req.rawHeaders.length > 2 * MAX_HEADER_PAIRS) throw headersTooLarge();
  // Of a header that was sent twice, node:http keeps one name.
  const isRepeated = Object.keys(req.headers).length < req.rawHeaders.length / 2;
  const twice = isRepeated && SINGLE.find((name) => (req.headersDistinct[name]?.length ?? 0) > 1);
  if (twice) throw badRequest(`the header ${twice} was sent twice`);
  if (encoding !== undefined && encoding !== 'chunked') {
    throw badRequest('the only Transfer-Encoding supported is chunked');
  }
  if (encoding !== undefined && isOld) throw badRequest('HTTP/1.0 has no Transfer-Encoding');
  if (host === undefined && !isOld) throw badRequest('the header Host is missing');
  if (host !== undefined && !HOST.test(host)) {
    throw badRequest('the header Host is not a host name with an optional port');
  }
  if (hasBody(req) && WITHOUT_BODY.includes(req.method!)) throw badRequest(`a ${req.method} request has no body`);
}

/** The `Expect` header. In HTTP/1.0 a server must ignore `100-continue` (RFC 9110, 10.1.1). */
export function expectOf({ headers, httpVersionMinor }: IncomingMessage): string | undefined {
  const expect = headers.expect?.toLowerCase();
  return httpVersionMinor === 0 && expect === CONTINUE ? undefined : expect;
}

/** Checks the length of the target, and `Expect`. Under `/v1` that comes after the key and the limits. */
export function checkTargetAndExpect(req: IncomingMessage): void {
  if (req.url!.length > MAX_TARGET_CHARS) throw uriTooLong();
  const expect = expectOf(req);
  if (expect !== undefined && expect !== CONTINUE) {
    throw new ApiError('expectation_failed', `the header Expect can only be ${CONTINUE}`, [], true);
  }
}
