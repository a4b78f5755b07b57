/** What is answered without a key: the pages outside `/v1`, health and readiness, and preflights. */
import { JSON_TYPE } from '../http/body.ts';
import { type HeaderList, notNow } from '../http/errors.ts';
import { errorReply, jsonReply, noContent, type Reply, replyWith } from '../http/reply.ts';
import type { PublicEndpoint } from './routes.ts';

const HEALTHY = jsonReply(200, '{"status":"ok"}');
const READY = jsonReply(200, '{"status":"ready"}');

const publicGet = (path: string, answer: () => Reply): PublicEndpoint => ({
  name: 'other',
  method: 'GET',
  path,
  answer,
});

/** A text for everybody. It is made at the first request: a start does not wait for what few people open. */
export function staticEndpoint(path: string, type: string, make: () => string, headers?: HeaderList): PublicEndpoint {
  let reply: Reply | undefined;
  const made = (body: string) => replyWith(200, type, Buffer.from(body), headers);
  return publicGet(path, () => (reply ??= made(make())));
}

/** `unready`: why the service is not ready; undefined: it is. */
export function healthEndpoints(unready: () => string | undefined): PublicEndpoint[] {
  const readiness = () => {
    const why = unready();
    return why === undefined ? READY : errorReply(notNow(why));
  };
  return [publicGet('/healthz', () => HEALTHY), publicGet('/readyz', readiness)];
}

const EXPOSED = `X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, RateLimit, RateLimit-Policy, Retry-After, \
Link, Location, Sunset, Idempotent-Replayed, Allow, WWW-Authenticate, X-Request-Id`;
const TAKEN = 'Authorization, Content-Type, Idempotency-Key';
const PREFLIGHT_SECONDS = '600';

/** Headers of every reply. If one origin is allowed, `Vary` makes caches keep a reply for each origin. */
export function corsHeaders(origin: string | undefined): HeaderList {
  if (origin === undefined) return [];
  const vary = origin === '*' ? [] : ['Vary', 'Origin'];
  return ['Access-Control-Allow-Origin', origin, 'Access-Control-Expose-Headers', EXPOSED, ...vary];
}

/** The reply to OPTIONS, with or without a key. */
export function preflight(allow: string, origin: string | undefined): Reply {
  const patch = allow.includes('PATCH') ? ['Accept-Patch', JSON_TYPE] : [];
  const headers = ['Allow', allow, ...patch];
  if (origin !== undefined) {
    headers.push('Access-Control-Allow-Methods', allow, 'Access-Control-Allow-Headers', TAKEN);
    headers.push('Access-Control-Max-Age', PREFLIGHT_SECONDS);
  }
  return noContent(headers);
}
