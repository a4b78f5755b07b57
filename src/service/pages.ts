/** What is answered without a key: the pages outside `/v1`, health and readiness, and preflights. */
import { JSON_TYPE } from '../http/edges.ts';
import { line, notNow } from '../http/errors.ts';
import { etagOf } from '../http/etag.ts';
import { bytesReply, errorReply, jsonReply, Reply } from '../http/reply.ts';
import type { Endpoint } from './routes.ts';

const HEALTHY = jsonReply(200, '{"status":"ok"}');
const READY = jsonReply(200, '{"status":"ready"}');

const openEndpoint = (path: string, handler: () => Reply): Endpoint => {
  return { name: 'other', method: 'GET', path, handler, isOpen: true };
};

/**
 * A page for everybody, with headers as lines. It is made at the first request: a start does not wait for pages that few
 * people open.
 */
export function pageEndpoint(path: string, type: string, make: () => string, headers = ''): Endpoint {
  let reply: Reply | undefined;
  const made = (body: string) => bytesReply(200, type, Buffer.from(body), headers, etagOf(body));
  return openEndpoint(path, () => (reply ??= made(make())));
}

/** `unready`: why the service is not ready; undefined: it is. */
export function healthEndpoints(unready: () => string | undefined): Endpoint[] {
  const readiness = () => {
    const why = unready();
    return why === undefined ? READY : errorReply(notNow(why));
  };
  return [
    openEndpoint('/healthz', () => HEALTHY),
    openEndpoint('/readyz', readiness),
    openEndpoint('*', () => HEALTHY),
  ];
}

const EXPOSED = `X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, RateLimit, RateLimit-Policy, Retry-After, \
Link, Location, ETag, Deprecation, Sunset, Idempotent-Replayed, Allow, WWW-Authenticate, X-Request-Id`;
const TAKEN = 'Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match';
const PREFLIGHT_SECONDS = '600';

/** Headers of every reply. If one origin is allowed, `Vary` makes caches keep a reply for each origin. */
export function corsHeaders(origin: string | undefined): string {
  if (origin === undefined) return '';
  const vary = origin === '*' ? '' : line('Vary', 'Origin');
  return line('Access-Control-Allow-Origin', origin) + line('Access-Control-Expose-Headers', EXPOSED) + vary;
}

/** The reply to OPTIONS, with or without a key. */
export function preflight(allow: string, origin: string | undefined): Reply {
  const taken = line('Access-Control-Allow-Methods', allow) + line('Access-Control-Allow-Headers', TAKEN);
  const cors = origin === undefined ? '' : taken + line('Access-Control-Max-Age', PREFLIGHT_SECONDS);
  const patch = allow.includes('PATCH') ? line('Accept-Patch', JSON_TYPE) : '';
  return new Reply(204, line('Allow', allow) + patch + cors);
}
