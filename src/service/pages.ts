/** What is answered without a key: the pages outside `/v1`, health and readiness, and preflights. */
import { JSON_TYPE } from '../http/edges.ts';
import { line, notNow } from '../http/errors.ts';
import { bytesReply, errorReply, jsonReply, Reply } from '../http/reply.ts';
import type { Endpoint } from './routes.ts';

export interface Page {
  readonly type: string;
  readonly body: string;
  /** As lines. */
  readonly headers?: string;
  readonly etag?: string;
}
/** By path. */
export type Pages = ReadonlyMap<string, Page>;

const HEALTHY = jsonReply(200, '{"status":"ok"}');
const READY = jsonReply(200, '{"status":"ready"}');

/** `unready`: why the service is not ready; undefined: it is. */
export function pageEndpoints(pages: Pages, unready: () => string | undefined): Endpoint[] {
  const row = (path: string, reply: () => Reply): Endpoint => {
    return { name: 'other', method: 'GET', path, handler: reply, isOpen: true };
  };
  const rows = [...pages].map(([path, page]) => {
    let reply: Reply | undefined;
    const made = () => bytesReply(200, page.type, Buffer.from(page.body), page.headers, page.etag);
    return row(path, () => (reply ??= made()));
  });
  const readiness = () => {
    const why = unready();
    return why === undefined ? READY : errorReply(notNow(why));
  };
  return [...rows, row('/healthz', () => HEALTHY), row('/readyz', readiness), row('*', () => HEALTHY)];
}

const EXPOSED = `X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, RateLimit, RateLimit-Policy, Retry-After, \
Link, Location, ETag, Deprecation, Sunset, Idempotent-Replayed, Allow, WWW-Authenticate, X-Request-Id, X-Lab-Clock`;
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
