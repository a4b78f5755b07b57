/**
 * Equal POSTs, of the same target and body: whether one is another try of the other, or an intention of its own. Their
 * Idempotency-Keys tell, and whether one was on its way already when the other was answered. One that failed, or was
 * refused, accounts for one other under a key of its own at most.
 */
import { ALONE, type Judged, type Judgement, type RequestRecord, type Surroundings } from './request-record.ts';
import { isFailure, isRefusal, isTooEarly, wasUnderWay } from './waiting.ts';

const AGAIN_MS = 60_000;

type Requests = readonly RequestRecord[];

/** A reply that only puts a POST off tells nothing of the try before it, which may have been done. */
const putsOff = ({ status, code }: RequestRecord) => status === 429 || code === 'idempotency_in_flight';

/** The failed POST that the newest sends again, if any. After a reply that came, it is a new intention. */
function failedBefore(newest: RequestRecord, before: Requests): RequestRecord | undefined {
  const { at, key, same } = newest;
  let last: RequestRecord | undefined;
  for (let place = before.length - 1; place >= 0; place--) {
    const one = before[place];
    if (putsOff(one) || one.endedAt > at || one.same !== same || wasUnderWay(newest, one)) continue;
    const isOwn = key !== undefined && one.key === key;
    if (isOwn || last === undefined) last = one;
    if (isOwn || key === undefined) break;
  }
  return last !== undefined && isFailure(last) && at <= last.endedAt + AGAIN_MS ? last : undefined;
}

export function judgeIdempotency(newest: RequestRecord, before: Requests, around = ALONE): Judgement[] {
  if (newest.method !== 'POST') return [];
  const failed = failedBefore(newest, before);
  const hasItsKey = newest.key !== undefined && newest.key === failed?.key;
  const isTaken = () => [...before, ...around.after].some((one) => idTakenBy(one, around) === failed?.requestId);
  const first: Judgement[] = hasItsKey
    ? [{ of: newest, is: 'good', by: newest }]
    : inPlaceOf(failed === undefined || isTaken() ? undefined : failed, newest);
  return [...first, ...ownIntentions(first, newest, before, around, isFailure)];
}

/** The first 422 may be a mistake; from the second on, the client uses one key for different intentions. */
export function judgeOneKeyForAll(newest: RequestRecord, before: Requests): Judgement[] {
  const isReused = ({ method, status }: RequestRecord) => method === 'POST' && status === 422;
  return isReused(newest) && before.some(isReused) ? [{ of: newest, is: 'bad', by: newest }] : [];
}

/**
 * Judges an equal POST under a new key that came before the time that a refused one was told: it looks like a try of
 * that one.
 */
export function judgeEarlyUnderNewKey(newest: RequestRecord, before: Requests, around = ALONE): Judgement[] {
  if (newest.method !== 'POST' || newest.key === undefined) return [];
  const isNew = !before.some((one) => isUnderKeyOf(newest, one));
  const first = inPlaceOf(isNew ? refusedBefore(newest, before, around) : undefined, newest);
  const hasFailed = (one: RequestRecord) => isFailure(one) || one.status === 429;
  return [...first, ...ownIntentions(first, newest, before, around, hasFailed)];
}

const isUnderKeyOf = ({ key, same }: RequestRecord, other: RequestRecord) => other.key === key && other.same === same;

/** The id of the one that accounts for this one. */
const idTakenBy = (one: RequestRecord, { judgementOf }: Surroundings) => judgementOf(one)?.instead?.requestId;

/** The latest for which the newest is too early, that did not come again since, and accounts for no other. */
function refusedBefore(newest: RequestRecord, before: Requests, around: Surroundings): RequestRecord | undefined {
  const keys = new Set<string | undefined>([undefined]);
  const taken = new Set(around.after.map((one) => idTakenBy(one, around)));
  for (let place = before.length - 1; place >= 0; place--) {
    const one = before[place];
    if (one.same !== newest.same) continue;
    const isOpen = isRefusal(one) && one.endedAt <= newest.at && isTooEarly(newest, one) && !wasUnderWay(newest, one);
    if (isOpen && !keys.has(one.key) && !taken.has(one.requestId)) return one;
    keys.add(one.key);
    taken.add(idTakenBy(one, around));
  }
  return undefined;
}

/** Bad, if there is one in whose place it seems to come. */
function inPlaceOf(instead: RequestRecord | undefined, newest: RequestRecord): Judgement[] {
  if (instead === undefined) return [];
  const { requestId, key, at } = instead;
  return [{ of: newest, is: 'bad', by: newest, instead: { requestId, key, at } }];
}

/**
 * Judges anew those that seemed to come in the place of another: each is an intention of its own once that one comes
 * again under its own key, and this one too, if it failed. Only a POST whose key was known brings that about, or finds
 * it so.
 */
function ownIntentions(
  first: readonly Judgement[],
  newest: RequestRecord,
  before: Requests,
  { after, judgementOf }: Surroundings,
  hasFailed: (one: RequestRecord) => boolean,
): Judgement[] {
  if (newest.key === undefined) return [];
  const isOfItsKey = (one: RequestRecord) => isUnderKeyOf(newest, one) || judgementOf(one)?.instead?.key === newest.key;
  const mayFree = !putsOff(newest) && before.some(isOfItsKey);
  if (first[0]?.is !== 'bad' && !mayFree) return [];
  const all = [...before, newest, ...after];
  const lastOfKey = new Map<string | undefined, RequestRecord>();
  for (const one of all) if (!putsOff(one) && one.same === newest.same) lastOfKey.set(one.key, one);
  const comesAgain = ({ key, requestId, at }: NonNullable<Judged['instead']>) => {
    const last = key === undefined ? undefined : lastOfKey.get(key);
    return last !== undefined && last.requestId !== requestId && last.at >= at;
  };
  const isOwn = (one: RequestRecord) => {
    if (one.same !== newest.same) return false;
    const judged = one === newest ? first[0] : judgementOf(one);
    if (judged?.is !== 'bad' || one.key === undefined || judged.instead === undefined) return false;
    return comesAgain(judged.instead) && (!hasFailed(one) || comesAgain(one));
  };
  return (mayFree ? all : [newest]).filter(isOwn).map((of) => ({ of, is: 'good', by: newest }));
}
