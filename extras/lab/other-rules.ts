/** Rules that judge each request in view of those before it: hopeless repeats, connections, paging, deprecation, bans. */
import { hasEnded, type RequestRecord, type Requests } from './record.ts';
import type { Finding } from './rule.ts';
import { wasSentBeforeReply } from './waits.ts';

const HOPELESS = new Set<number | null>([400, 403, 404, 405, 409, 410, 411, 413, 414, 415, 417, 422, 431]);
const HOPELESS_TIMES = 3;
const REUSE_MS = 5_000;
/** To close a connection that was idle for so long is no waste: the service would soon close it. */
const LONG_IDLE_MS = 1_000;
/** The connections that a client may open beside idle ones within `POOL_MS`. */
const MAX_POOL = 16;
const POOL_MS = 60_000;

type Verdict = Finding['is'] | undefined;

const each = (verdict: (request: RequestRecord, before: Requests) => Verdict) => (requests: Requests) =>
  requests.flatMap((request, i): Finding[] => {
    const is = hasEnded(request) ? verdict(request, requests.slice(0, i)) : undefined;
    return is === undefined ? [] : [{ request, is }];
  });

const isHopeless = ({ status }: RequestRecord) => HOPELESS.has(status);

export const judgeHopeless = each((request, before) => {
  const answered = before.filter((other) => other.endedAt <= request.at && !wasSentBeforeReply(request, other));
  const same = answered.filter(({ content }) => content === request.content);
  const inVain = same.length - 1 - same.findLastIndex((other) => !isHopeless(other));
  if (inVain >= HOPELESS_TIMES) return 'bad';
  return inVain === 0 && answered.some(isHopeless) ? 'good' : undefined;
});

/**
 * A new connection is bad if an idle one was closed for it, or if it is one too many. It is not judged if all others
 * were busy when it was opened, if it replaces a lost one, or while a pool begins.
 */
export const judgeReuse = each((request, before) => {
  const { at, opens, isProxied } = request;
  const newest = [...new Map(before.map((other) => [other.connection, other])).values()]; // of each connection
  const idle = newest.filter((one) => one.isKeptAlive && one.endedAt <= at && at - one.endedAt < REUSE_MS);
  if (idle.length === 0) return undefined;
  if (isProxied) return 'hidden';
  if (!opens) return 'good';
  const wasBusy = (one: RequestRecord) => request.connectedAt < one.endedAt && wasSentBeforeReply(request, one);
  const unused = idle.filter((one) => !wasBusy(one));
  if (unused.length === 0 || replacesLost(at, before)) return undefined;
  const poolBeganAt = poolBeginning(at, before);
  const open = newest.filter(({ isKeptAlive, endedAt }) => isKeptAlive && endedAt > poolBeganAt);
  const wasClosedForIt = ({ endedAt, closedAfterMs = LONG_IDLE_MS }: RequestRecord) =>
    closedAfterMs < LONG_IDLE_MS && endedAt + closedAfterMs <= request.endedAt;
  return open.length >= MAX_POOL || unused.some(wasClosedForIt) ? 'bad' : undefined;
});

/** Whether more connections were lost, or closed by the service, than opened since. */
function replacesLost(at: number, before: Requests): boolean {
  let lost = 0;
  for (const { opens, isKeptAlive, endedAt } of before) {
    if (opens && lost > 0) lost--;
    if (!isKeptAlive && endedAt <= at) lost++;
  }
  return lost > 0;
}

/** A pool begins anew after a silence in which its idle connections may have ended. */
function poolBeginning(now: number, before: Requests): number {
  let beganAt = now - POOL_MS;
  let busyUntil = Number.NEGATIVE_INFINITY;
  for (const { at, endedAt } of before) {
    if (at - busyUntil >= REUSE_MS) beganAt = Math.max(beganAt, at);
    busyUntil = Math.max(busyUntil, endedAt);
  }
  return beganAt;
}

export const judgePaging = each(({ method, isLinked }) => {
  const isRead = method === 'GET' || method === 'HEAD';
  return !isRead || isLinked === undefined ? undefined : isLinked ? 'good' : 'bad';
});

/** Every reply of that operation says that it is deprecated. */
export const judgeDeprecated = each((request, before) => {
  if (request.operation !== 'getPet') return undefined;
  const wasWarned = before.some(
    ({ operation, isLost, endedAt }) => operation === 'getPet' && !isLost && endedAt <= request.at,
  );
  return wasWarned ? 'bad' : 'good';
});

export const judgeBan = each(({ beganBan }) => (beganBan ? 'bad' : 'good'));
