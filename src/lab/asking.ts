/** What the client asks for again, what it leaves undone, and which connections, pages and paths it takes. */
import type { Judgement, RequestRecord } from './request-record.ts';
import { isFailure } from './waiting.ts';

const AGAIN_MS = 60_000;
/** A POST that failed, or whose time to wait is over, is given so long to come again. */
const FORGOTTEN_AFTER_MS = 5_000;
const HOPELESS = [400, 403, 404, 405, 409, 410, 411, 413, 414, 415, 417, 422, 431];
const HOPELESS_TIMES = 3;
const REUSE_MS = 5_000;
/** Who lets a connection go after so long does so before the service would, which is no waste. */
const LET_GO_MS = 1_000;
/** Idle connections that a client may keep. */
const MAX_POOL = 16;
export const REDUNDANT_MS = 250;

const one = (is: Judgement['is'], newest: RequestRecord): Judgement[] => [{ of: newest, is, by: newest }];

/** Only the latest of the same counts: behind a reply that came, the same POST is a new wish. */
export function judgeIdempotency(newest: RequestRecord, before: readonly RequestRecord[]): Judgement[] {
  if (newest.method !== 'POST') return [];
  const last = before.findLast(({ same }) => same === newest.same);
  if (last === undefined || !isFailure(last)) return [];
  if (newest.at < last.endedAt || newest.at > last.endedAt + AGAIN_MS) return [];
  return one(newest.key !== undefined && newest.key === last.key ? 'good' : 'bad', newest);
}

/** The first 422 may be a mistake; from the second on, one key stands for different wishes. */
export function judgeOneKeyForAll(newest: RequestRecord, before: readonly RequestRecord[]): Judgement[] {
  const isReused = ({ method, status }: RequestRecord) => method === 'POST' && status === 422;
  return isReused(newest) && before.some(isReused) ? one('bad', newest) : [];
}

/** The tries of one POST from its first failure on. */
interface Wish {
  first: RequestRecord;
  last: RequestRecord;
}

/**
 * Each POST that failed, by its first failure: good once it was answered, bad when it has not come again for too long.
 * `openUntil`: when the last of those that may still come again is judged. Moments are of the key's own clock.
 */
export function judgeFinished(
  history: readonly RequestRecord[],
  now: number,
): { judged: Judgement[]; openUntil: number } {
  const judged: Judgement[] = [];
  const open = new Map<string, Wish>();
  for (const post of history.filter(({ method }) => method === 'POST')) {
    const wish = open.get(post.same);
    if (hasFailed(post)) open.set(post.same, { first: wish?.first ?? post, last: post });
    else if (wish !== undefined && isTryOf(wish, post)) {
      judged.push({ of: wish.first, is: 'good', by: post });
      open.delete(post.same);
    }
  }
  let openUntil = now;
  // A 429 speaks for the whole key: until the time it told, no POST can come again.
  const held = history.map(({ status, waitUntil }) => (status === 429 ? (waitUntil ?? 0) : 0));
  for (const { first, last } of open.values()) {
    const due = Math.max(last.endedAt, last.waitUntil ?? 0, ...held) + FORGOTTEN_AFTER_MS;
    if (due <= now) judged.push({ of: first, is: 'bad', by: last });
    else if (Number.isFinite(due)) openUntil = Math.max(openUntil, due);
  }
  return { judged, openUntil };
}

const hasFailed = (post: RequestRecord) => isFailure(post) || post.status === 429;

/** The same POST at the same time is another's wish, unless it has the same Idempotency-Key. */
const isTryOf = ({ last }: Wish, post: RequestRecord) =>
  post.at >= last.endedAt || (post.key !== undefined && post.key === last.key);

export function judgeHopeless(newest: RequestRecord, before: readonly RequestRecord[]): Judgement[] {
  const isHopeless = ({ status, code }: RequestRecord) =>
    status !== null && HOPELESS.includes(status) && code !== 'idempotency_in_flight';
  const answered = before.filter(({ endedAt }) => endedAt <= newest.at);
  const same = answered.filter((other) => other.same === newest.same);
  const inVain = same.length - 1 - same.findLastIndex((other) => !isHopeless(other));
  if (inVain >= HOPELESS_TIMES) return one('bad', newest);
  return inVain === 0 && answered.some(isHopeless) ? one('good', newest) : [];
}

/**
 * A new connection is a fault where an idle one was let go for it, or where too many are idle. It is none while
 * all others are busy, in place of one that was lost, nor as one of a few that stay open: a pool begins so.
 */
export function judgeReuse(newest: RequestRecord, before: readonly RequestRecord[]): Judgement[] {
  const latest = new Map(before.map((other) => [other.connection, other]));
  const isIdle = ({ isKept, endedAt }: RequestRecord) =>
    isKept && endedAt <= newest.at && newest.at - endedAt < REUSE_MS;
  const idle = [...latest.values()].filter(isIdle);
  if (idle.length === 0) return [];
  if (newest.isProxied) return one('hidden', newest);
  if (!newest.opens) return one('good', newest);
  let notReplaced = 0;
  for (const { opens, isKept, endedAt } of before) {
    if (opens && notReplaced > 0) notReplaced--;
    if (!isKept && endedAt <= newest.at) notReplaced++;
  }
  const isWaste = idle.some(({ line }) => (line.endedAfterMs ?? LET_GO_MS) < LET_GO_MS) || idle.length >= MAX_POOL;
  return isWaste && notReplaced === 0 ? one('bad', newest) : [];
}

export function judgePaging(newest: RequestRecord): Judgement[] {
  return newest.method !== 'GET' || newest.isLinked === undefined ? [] : one(newest.isLinked ? 'good' : 'bad', newest);
}

export function judgeRedundant(newest: RequestRecord, before: readonly RequestRecord[]): Judgement[] {
  const isAnswered = ({ isLost, status }: RequestRecord) => !isLost && (status === 200 || status === 304);
  if (newest.method !== 'GET' || !isAnswered(newest)) return [];
  const isRepeated = before.some(
    (other) =>
      other.same === newest.same &&
      other.connection === newest.connection &&
      isAnswered(other) &&
      other.petsVersion === newest.petsVersion &&
      newest.at - other.at < REDUNDANT_MS,
  );
  return one(isRepeated ? 'bad' : 'good', newest);
}

/** Every whole reply of that operation says so. */
export function judgeDeprecated(newest: RequestRecord, before: readonly RequestRecord[]): Judgement[] {
  const asks = ({ operation }: RequestRecord) => operation === 'getPet';
  if (!asks(newest)) return [];
  const wasTold = before.some((other) => asks(other) && !other.isLost && other.endedAt <= newest.at);
  return one(wasTold ? 'bad' : 'good', newest);
}

export const judgeBan = (newest: RequestRecord): Judgement[] => one(newest.bans ? 'bad' : 'good', newest);
