/** What stands outside `/v1`, and what every path answers to OPTIONS: no key, no limits. */
import { preflightHeaders } from './http/cors.ts';
import { ApiError, methodNotAllowed, notFound } from './http/errors.ts';
import type { Incoming } from './http/messages.ts';
import { emptyReply, errorReply, jsonReply, kept, type Reply } from './http/reply.ts';
import { checkDemands } from './http/request.ts';

const HEALTHY = kept(jsonReply(200, '{"status":"ok"}'));
const READY = kept(jsonReply(200, '{"status":"ready"}'));
const ALLOW = 'GET, HEAD, OPTIONS';

/** Why requests under `/v1` are not served just now. */
export type Unready = 'is starting' | 'is shutting down' | 'waits for its store';

interface Outside {
  /** By path. */
  pages: ReadonlyMap<string, () => Reply>;
  corsOrigin: string | undefined;
  unready: Unready | undefined;
}

export function answerPage(req: Incoming, path: string, outside: Outside): Reply {
  const page = pageAt(path, outside);
  if (req.method === 'OPTIONS' && (page !== undefined || path === '*')) {
    return preflight(req, ALLOW, outside.corsOrigin);
  }
  checkDemands(req);
  if (page === undefined) throw outside.unready === 'is starting' ? notNow(outside.unready) : notFound();
  if (req.method !== 'GET' && req.method !== 'HEAD') throw methodNotAllowed(ALLOW);
  return page;
}

function pageAt(path: string, { pages, unready }: Outside): Reply | undefined {
  if (path === '/healthz') return HEALTHY;
  if (path !== '/readyz') return pages.get(path)?.();
  return unready === undefined ? READY : errorReply(notNow(unready));
}

export function preflight(req: Incoming, allow: string, corsOrigin: string | undefined): Reply {
  checkDemands(req);
  return emptyReply(204, ['Allow', allow, ...preflightHeaders(corsOrigin, allow)]);
}

export function notNow(unready: Unready): ApiError {
  return new ApiError('unavailable', `the service ${unready}`, ['Retry-After', '1']);
}
