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

/** The POSTs that equal the newest: those that came before it, and all in order of arrival. */
function equalsOf(newest: RequestRecord, before: Requests, after: Requests) {
  const isEqual = ({ same }: RequestRecord) => same === newest.same;
  const earlier = before.filter(isEqual);
  return { earlier, all: [...earlier, newest, ...after.filter(isEqual)] };
}

/** The failed POST that the newest sends again, if any. After a reply that came, it is a new intention. */
function failedBefore(newest: RequestRecord, earlier: Requests): RequestRecord | undefined {
  const known = earlier.filter((one) => one.endedAt <= newest.at && !putsOff(one) && !wasUnderWay(newest, one));
  const own = newest.key === undefined ? undefined : known.findLast(({ key }) => key === newest.key);
  const last = own ?? known.at(-1);
  return last !== undefined && isFailure(last) && newest.at <= last.endedAt + AGAIN_MS ? last : undefined;
}

export function judgeIdempotency(newest: RequestRecord, before: Requests, around = ALONE): Judgement[] {
  if (newest.method !== 'POST') return [];
  const { earlier, all } = equalsOf(newest, before, around.after);
  const failed = failedBefore(newest, earlier);
  const hasItsKey = newest.key !== undefined && newest.key === failed?.key;
  const first: Judgement[] = hasItsKey
    ? [{ of: newest, is: 'good', by: newest }]
    : inPlaceOf(failed, newest, takenOf(all, around));
  return [...first, ...ownIntentions(first, newest, all, around, isFailure)];
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
  const { earlier, all } = equalsOf(newest, before, around.after);
  const latest = new Map(earlier.map((one) => [one.key, one]));
  const isInTime = (one: RequestRecord) => one.endedAt > newest.at || !isRefusal(one) || !isTooEarly(newest, one);
  const told = [...latest.values()].filter(
    (one) => one.key !== undefined && !isInTime(one) && !wasUnderWay(newest, one),
  );
  const taken = takenOf(all, around);
  const instead = latest.has(newest.key) ? undefined : told.find(({ requestId }) => !taken.has(requestId));
  const first = inPlaceOf(instead, newest, taken);
  const hasFailed = (one: RequestRecord) => isFailure(one) || one.status === 429;
  return [...first, ...ownIntentions(first, newest, all, around, hasFailed)];
}

/** The ids of those that account for another already. */
const takenOf = (all: Requests, { judgementOf }: Surroundings) =>
  new Set(all.map((one) => judgementOf(one)?.instead?.requestId));

/** Bad, if there is one in whose place it seems to come. */
function inPlaceOf(
  instead: RequestRecord | undefined,
  newest: RequestRecord,
  taken: ReadonlySet<string | undefined>,
): Judgement[] {
  if (instead === undefined || taken.has(instead.requestId)) return [];
  const { requestId, key, at } = instead;
  return [{ of: newest, is: 'bad', by: newest, instead: { requestId, key, at } }];
}

/**
 * Judges anew those that seemed to come in the place of another: each is an intention of its own once that one comes
 * again under its own key, and this one too, if it failed.
 */
function ownIntentions(
  first: readonly Judgement[],
  newest: RequestRecord,
  all: Requests,
  { judgementOf }: Surroundings,
  hasFailed: (one: RequestRecord) => boolean,
): Judgement[] {
  const lastOfKey = new Map(all.filter((one) => !putsOff(one)).map((one) => [one.key, one]));
  const comesAgain = ({ key, requestId, at }: NonNullable<Judged['instead']>) => {
    const last = key === undefined ? undefined : lastOfKey.get(key);
    return last !== undefined && last.requestId !== requestId && last.at >= at;
  };
  const own = all.filter((one) => {
    const judged = one === newest ? first[0] : judgementOf(one);
    if (judged?.is !== 'bad' || one.key === undefined || judged.instead === undefined) return false;
    return comesAgain(judged.instead) && (!hasFailed(one) || comesAgain(one));
  });
  return own.map((of) => ({ of, is: 'good', by: newest }));
}
