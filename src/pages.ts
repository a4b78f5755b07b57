/**
 * Pages outside `/v1`: health, readiness, console and document. They need no key; large ones have a limit per address.
 * This file also has the reasons why requests under `/v1` are not served yet, or no longer.
 */
import { underConditions } from './http/conditions.ts';
import { preflight } from './http/cors.ts';
import { ApiError, methodNotAllowed, nothingThere } from './http/errors.ts';
import type { Incoming } from './http/messages.ts';
import { errorReply, jsonReply, type Reply } from './http/reply.ts';
import { checkTargetAndExpect } from './http/request.ts';

const HEALTHY = jsonReply(200, '{"status":"ok"}');
const READY = jsonReply(200, '{"status":"ready"}');
const ALLOW = 'GET, HEAD, OPTIONS';

export type Unready = 'is starting' | 'is shutting down' | 'waits for its store';

/** Returns a page in the encoding that `Accept-Encoding` asks for. */
export type Page = (accept: string | undefined) => Reply;
/** The pages by path. */
export type Pages = ReadonlyMap<string, Page>;

export function answerPage(
  req: Incoming,
  path: string,
  { pages, corsOrigin, unready }: { pages: Pages; corsOrigin: string | undefined; unready: Unready | undefined },
): Reply {
  let page = pages.get(path)?.(req.headers['accept-encoding']);
  if (path === '/healthz') page = HEALTHY;
  if (path === '/readyz') page = unready === undefined ? READY : errorReply(notNow(unready));
  if (req.method === 'OPTIONS' && (page !== undefined || path === '*')) return preflight(req, ALLOW, corsOrigin);
  checkTargetAndExpect(req);
  // While the service is starting, `/lab` cannot be told from a path that does not exist: so neither is a 404 yet.
  if (page === undefined) throw unready === 'is starting' ? notNow(unready) : nothingThere();
  if (req.method !== 'GET' && req.method !== 'HEAD') throw methodNotAllowed(ALLOW);
  return page.etag === undefined ? page : underConditions(req.headers, page);
}

export function notNow(unready: Unready): ApiError {
  return new ApiError('unavailable', `the service ${unready}`, ['Retry-After', '1']);
}
