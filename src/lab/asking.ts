/** Checks of hopeless and unfinished requests, and of the use of connections, pages and paths. */
import type { Judgement, RequestRecord } from './request-record.ts';
import { isFailure, wasUnderWay } from './waiting.ts';

/** The time that a failed POST has to come again, counted from its failure or from the end of its wait. */
const FORGOTTEN_AFTER_MS = 5_000;
/** By status: the list is gone through for each request of a record, and a Set takes longer. */
const HOPELESS: readonly boolean[] = Array.from({ length: 600 }, (_, status) =>
  [400, 403, 404, 405, 409, 410, 411, 413, 414, 415, 417, 422, 431].includes(status),
);
const HOPELESS_TIMES = 3;
const REUSE_MS = 5_000;
/** A client that closes a connection after so long an idle time does not waste it: the service would soon close it. */
const LET_GO_MS = 1_000;
/** Connections that a client may open beside idle ones within that time. */
const MAX_POOL = 16;
const POOL_MS = 60_000;
export const REDUNDANT_MS = 250;

const one = (is: Judgement['is'], newest: RequestRecord): Judgement[] => [{ of: newest, is, by: newest }];

/** The tries of one POST from its first failure on. */
interface Wish {
  first: RequestRecord;
  last: RequestRecord;
}

/**
 * Judges each POST that failed, under its first failure: good once it was answered, bad if it did not come again in
 * time. `openUntil`: the moment at which the last open one will be judged. Moments are of the key's own clock.
 */
export function judgeFinished(
  history: readonly RequestRecord[],
  now: number,
): { judged: Judgement[]; openUntil: number } {
  const judged: Judgement[] = [];
  const open = new Map<string, Wish>();
  // A 429 speaks for the whole key: until the time it told, no POST can come again.
  let heldUntil = 0;
  for (const post of history) {
    if (post.status === 429) heldUntil = Math.max(heldUntil, post.waitUntil ?? 0);
    if (post.method !== 'POST' || post.isUnread) continue; // unread, it could not be known again
    const wish = open.get(post.same);
    if (hasFailed(post)) {
      if (wish === undefined) open.set(post.same, { first: post, last: post });
      else wish.last = post;
    } else if (wish !== undefined && isTryOf(wish, post)) {
      judged.push({ of: wish.first, is: 'good', by: post });
      open.delete(post.same);
    }
  }
  let openUntil = now;
  for (const { first, last } of open.values()) {
    const due = Math.max(last.endedAt, last.waitUntil ?? 0, heldUntil) + FORGOTTEN_AFTER_MS;
    if (due <= now) judged.push({ of: first, is: 'bad', by: last });
    else if (Number.isFinite(due)) openUntil = Math.max(openUntil, due);
  }
  return { judged, openUntil };
}

const hasFailed = (post: RequestRecord) => isFailure(post) || post.status === 429;

/** An equal POST at the same time is another intention, unless it has the same Idempotency-Key. */
const isTryOf = ({ last }: Wish, post: RequestRecord) =>
  post.at >= last.endedAt || (post.key !== undefined && post.key === last.key);

export function judgeHopeless(newest: RequestRecord, before: readonly RequestRecord[]): Judgement[] {
  const isHopeless = ({ status, code }: RequestRecord) => HOPELESS[status ?? 0] && code !== 'idempotency_in_flight';
  const isKnown = (other: RequestRecord) => other.endedAt <= newest.at && !wasUnderWay(newest, other);
  let inVain = 0;
  for (let place = before.length - 1; place >= 0; place--) {
    const other = before[place];
    if (other.same !== newest.same || !isKnown(other)) continue;
    if (!isHopeless(other)) break;
    inVain++;
  }
  if (inVain >= HOPELESS_TIMES) return one('bad', newest);
  return inVain === 0 && before.some((other) => isHopeless(other) && isKnown(other)) ? one('good', newest) : [];
}

/**
 * A new connection is a fault if an idle one was closed for it, or if too many are idle. It is none if all others were
 * busy when it was opened, in place of a lost one, or as one of a few that stay open: a pool begins so, and begins anew
 * after a silence in which its idle connections may have ended.
 */
export function judgeReuse(newest: RequestRecord, before: readonly RequestRecord[]): Judgement[] {
  const isIdle = ({ isKept, endedAt }: RequestRecord) =>
    isKept && endedAt <= newest.at && newest.at - endedAt < REUSE_MS;
  if (!newest.opens || newest.isProxied) {
    if (!hasLatest(before, isIdle)) return [];
    return one(newest.isProxied ? 'hidden' : 'good', newest);
  }
  const latest = new Map(before.map((other) => [other.connection, other]));
  const wasBusy = (other: RequestRecord) => newest.connectedAt < other.endedAt && wasUnderWay(newest, other);
  const idle = [...latest.values()].filter((other) => isIdle(other) && !wasBusy(other));
  if (idle.length === 0) return [];
  let [notReplaced, busyUntil, begunAt] = [0, Number.NEGATIVE_INFINITY, newest.at - POOL_MS];
  for (const { at, opens, isKept, endedAt } of before) {
    if (opens && notReplaced > 0) notReplaced--;
    if (!isKept && endedAt <= newest.at) notReplaced++;
    if (at - busyUntil >= REUSE_MS) begunAt = Math.max(begunAt, at);
    busyUntil = Math.max(busyUntil, endedAt);
  }
  const recent = [...latest.values()].filter(({ isKept, endedAt }) => isKept && endedAt > begunAt);
  const isWaste = idle.some(({ line }) => (line.endedAfterMs ?? LET_GO_MS) < LET_GO_MS) || recent.length >= MAX_POOL;
  return isWaste && notReplaced === 0 ? one('bad', newest) : [];
}

/** Whether the latest request of any connection is so. */
function hasLatest(requests: readonly RequestRecord[], isSo: (one: RequestRecord) => boolean): boolean {
  const known = new Set<number>();
  for (let place = requests.length - 1; place >= 0; place--) {
    const { connection } = requests[place];
    if (known.has(connection)) continue;
    if (isSo(requests[place])) return true;
    known.add(connection);
  }
  return false;
}

export function judgePaging(newest: RequestRecord): Judgement[] {
  const lists = newest.method === 'GET' || newest.method === 'HEAD';
  return !lists || newest.isLinked === undefined ? [] : one(newest.isLinked ? 'good' : 'bad', newest);
}

/** What the client may have changed itself, an animal or a category, it may read again. */
export function judgeRedundant(newest: RequestRecord, before: readonly RequestRecord[]): Judgement[] {
  const isAnswered = ({ isLost, status }: RequestRecord) => !isLost && (status === 200 || status === 304);
  if (newest.method !== 'GET' || !isAnswered(newest)) return [];
  const setAt = before.findLast(({ method, status }) => method === 'PUT' && status !== null && status < 300)?.at ?? 0;
  const isRepeated = before.some(
    (other) =>
      other.same === newest.same &&
      other.connection === newest.connection &&
      isAnswered(other) &&
      other.petsVersion === newest.petsVersion &&
      newest.at - other.at < REDUNDANT_MS &&
      other.at >= setAt,
  );
  return one(isRepeated ? 'bad' : 'good', newest);
}

/** Bad after a whole reply of that operation: each says that it is deprecated. */
export function judgeDeprecated(newest: RequestRecord, before: readonly RequestRecord[]): Judgement[] {
  const asks = ({ operation }: RequestRecord) => operation === 'getPet';
  if (!asks(newest)) return [];
  const wasTold = before.some((other) => asks(other) && !other.isLost && other.endedAt <= newest.at);
  return one(wasTold ? 'bad' : 'good', newest);
}

export const judgeBan = (newest: RequestRecord): Judgement[] => one(newest.bans ? 'bad' : 'good', newest);
