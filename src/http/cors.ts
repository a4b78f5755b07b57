/** CORS: pages of another origin may use the service only if the operator allows it. They can read all of EXPOSED. */
import type { Incoming } from './messages.ts';
import { noContent, type Reply } from './reply.ts';
import { checkTargetAndExpect, JSON_TYPE } from './request.ts';

const EXPOSED = `X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, RateLimit, RateLimit-Policy, Retry-After, \
Link, Location, ETag, Deprecation, Sunset, Idempotent-Replayed, Allow, WWW-Authenticate, X-Request-Id, X-Lab-Clock`;
const TAKEN = 'Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match';
const PREFLIGHT_SECONDS = '600';

/** Headers of every reply. If one origin is allowed, `Vary` makes caches keep a reply for each origin. */
export function corsHeaders(origin: string | undefined): string[] {
  if (origin === undefined) return [];
  const vary = origin === '*' ? [] : ['Vary', 'Origin'];
  return ['Access-Control-Allow-Origin', origin, 'Access-Control-Expose-Headers', EXPOSED, ...vary];
}

/** The reply to OPTIONS, with or without a key. */
export function preflight(req: Incoming, allow: string, origin: string | undefined): Reply {
  checkTargetAndExpect(req);
  const taken = ['Access-Control-Allow-Methods', allow, 'Access-Control-Allow-Headers', TAKEN];
  const cors = origin === undefined ? [] : [...taken, 'Access-Control-Max-Age', PREFLIGHT_SECONDS];
  const patch = allow.includes('PATCH') ? ['Accept-Patch', JSON_TYPE] : [];
  return noContent(['Allow', allow, ...patch, ...cors]);
}
