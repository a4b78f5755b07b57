/** Checks of waits: as long as told; otherwise longer each time; and not in step with other connections. */
import { ALONE, type Judgement, type RequestRecord } from './request-record.ts';

/** A request on a connection opened so long after a refusal was not under way already when the refusal came. */
const KNOWN_TO_ALL_MS = 1_000;
/** A connection was opened for the request that came on it first, within that time. */
const OPENED_FOR_MS = 1_000;
/** What a client that pipelines, or a proxy's other caller, had sent before the reply could be read comes so soon. */
const UNDER_WAY_MS = 100;
/** Timers fire a fraction early. */
const TIMER_SLACK_MS = 5;
const FAILURES_IN_A_ROW = 3;
export const LONG_ROW = 5;
const NO_WAIT_MS = 50;
const GROWTH = 1.5;
export const HERD_CONNECTIONS = 8;
export const HERD_MS = 100;
/** Refusals that gave about the same time are one wave. */
const WAVE_MS = 1_000;

type Requests = readonly RequestRecord[];

export const isFailure = ({ isLost, status }: RequestRecord): boolean => isLost || (status !== null && status >= 500);
export const isRefusal = ({ status, waitUntil }: RequestRecord) =>
  waitUntil !== undefined && (status === 429 || status === 503);
/** It told no time, or one that is no refusal's: a 500, 502 or 504 with Retry-After. */
const isUnrefused = (one: RequestRecord) => (isFailure(one) || one.status === 429) && !isRefusal(one);
const isUntold = (one: RequestRecord) => isUnrefused(one) && one.waitUntil === undefined;

/** A 429 speaks for the whole key, a 503 for its operation alone. */
const isMeant = (newest: RequestRecord, { status, operation }: RequestRecord) =>
  status === 429 || newest.operation === operation;

/**
 * Whether a request was on its way before the other was answered, so that it is no try of it: it is the first on a
 * connection that was opened for it before. Its bytes may have been read later, behind those of other connections.
 */
export const wasUnderWay = ({ opens, connectedAt, at }: RequestRecord, { endedAt }: RequestRecord): boolean =>
  opens && connectedAt <= endedAt && at - connectedAt <= OPENED_FOR_MS;

/** Equal POSTs, each under a key of its own, are judged by `judgeEarlyUnderNewKey`. */
const isSameAgain = (newest: RequestRecord, { same, key }: RequestRecord) =>
  newest.same === same && (newest.key === key || newest.key === undefined || key === undefined);

/**
 * Whether the sender of the newest request can know of the refusal: it is the same request again, or it is on the same
 * connection, or on one opened afterwards. Another process, on an older connection of its own, was never told.
 */
function canKnow(newest: RequestRecord, told: RequestRecord): boolean {
  if (newest.at < told.endedAt || wasUnderWay(newest, told)) return false;
  if (isSameAgain(newest, told)) return true;
  if (newest.connection === told.connection) {
    // On a proxy's connection the next may be another caller's, sent before the refused one had read its reply.
    const mayCross = newest.line.isPipelined === true || newest.isProxied;
    return !mayCross || newest.at > told.endedAt + UNDER_WAY_MS;
  }
  return newest.connectedAt > told.endedAt && newest.at >= told.endedAt + KNOWN_TO_ALL_MS;
}

export const isTooEarly = ({ at }: RequestRecord, { waitUntil }: RequestRecord): boolean =>
  waitUntil !== undefined && at < waitUntil - TIMER_SLACK_MS;

/**
 * Judges each refusal: bad by a request that came too early, good by one that came in time. Bad ones stay bad; in a
 * flood that are nearly all.
 */
export function judgeRetryAfter(newest: RequestRecord, before: Requests, { judgementOf } = ALONE): Judgement[] {
  const isOpen = (one: RequestRecord) => isRefusal(one) && judgementOf(one)?.is !== 'bad';
  const told = before.filter((one) => isOpen(one) && isMeant(newest, one) && canKnow(newest, one));
  return told.map((of) => ({ of, is: isTooEarly(newest, of) ? 'bad' : 'good', by: newest }));
}

/** The newest request and the row of such failures before it; requests sent side by side are no row. */
function rowBehind(newest: RequestRecord, before: Requests, isOfRow = isUntold): RequestRecord[] {
  const backwards = [newest];
  let first = newest;
  for (let place = before.length - 1; place >= 0; place--) {
    const one = before[place];
    if (one.same !== newest.same || one.endedAt > first.at || wasUnderWay(first, one)) continue;
    if (!isOfRow(one)) break;
    backwards.push(one);
    first = one;
  }
  const failures = isOfRow(newest) ? backwards.length : backwards.length - 1;
  return failures < FAILURES_IN_A_ROW ? [] : backwards.reverse();
}

const waitBefore = (row: Requests, place: number) => row[place].at - row[place - 1].endedAt;

/** Judges each wait of a row, also the last, before a success. */
export function judgeWaits(newest: RequestRecord, before: Requests): Judgement[] {
  const row = rowBehind(newest, before, isUnrefused);
  return row.slice(1).map((of, at) => ({ of, is: waitBefore(row, at + 1) < NO_WAIT_MS ? 'bad' : 'good', by: of }));
}

/** Judges each long row, under its first request: waits by chance are not all so short. */
export function judgeHaste(newest: RequestRecord, before: Requests): Judgement[] {
  const row = rowBehind(newest, before, isUnrefused);
  if (row.length < LONG_ROW) return [];
  const hasWaited = row.slice(1).some((_, at) => waitBefore(row, at + 1) >= NO_WAIT_MS);
  return [{ of: row[0], is: hasWaited ? 'good' : 'bad', by: newest }];
}

/**
 * Judges each row, under its first request. The longest wait of its second half is compared with the shortest of its
 * first (the one in the middle is in both), so that random waits that grow on average seldom count as not growing.
 */
export function judgeGrowth(newest: RequestRecord, before: Requests): Judgement[] {
  const row = rowBehind(newest, before);
  if (row.length === 0) return [];
  const waits = row.slice(1).map((_, at) => waitBefore(row, at + 1));
  const half = Math.ceil(waits.length / 2);
  const grows = Math.max(...waits.slice(-half)) >= GROWTH * Math.min(...waits.slice(0, half));
  return [{ of: row[0], is: grows ? 'good' : 'bad', by: newest }];
}

/**
 * Judges a wave of refusals, under its first one: bad as soon as over half of its connections are back within some
 * 100 ms of each other, on time or late; good when as many are back. A connection counts once, also a new one.
 */
export function judgeHerd(newest: RequestRecord, before: Requests): Judgement[] {
  const wave = newestWave(newest, before);
  if (wave.length < HERD_CONNECTIONS) return [];
  const [first] = wave;
  const isBack = (one: RequestRecord) => one.at >= first.waitUntil! - HERD_MS && one.at >= first.endedAt;
  const back = new Map<number, number>();
  for (const one of [...before, newest]) {
    if (isBack(one) && !back.has(one.connection)) back.set(one.connection, one.at);
  }
  const moments = [...back.values()].slice(0, wave.length).sort((a, b) => a - b);
  if (mostWithin(moments, HERD_MS) > wave.length / 2) return [{ of: first, is: 'bad', by: newest }];
  return moments.length === wave.length ? [{ of: first, is: 'good', by: newest }] : [];
}

/** The largest number of the moments, which are in order, that lie within `ms` of each other. */
function mostWithin(moments: readonly number[], ms: number): number {
  let [first, most] = [0, 0];
  for (const [place, at] of moments.entries()) {
    while (moments[first] < at - ms) first++;
    most = Math.max(most, place - first + 1);
  }
  return most;
}

/** The newest refusals that gave about the same time: one a connection, in the order of that time. */
function newestWave(newest: RequestRecord, before: Requests): RequestRecord[] {
  // In a flood all are told a time that is far away; to put them in order would take long.
  if (!before.some((one) => isRefusal(one) && one.waitUntil! <= newest.at + HERD_MS)) return [];
  const told = before.filter((one) => isRefusal(one) && one.endedAt <= newest.at);
  let wave: RequestRecord[] = [];
  for (const one of told.sort((a, b) => a.waitUntil! - b.waitUntil!)) {
    const goesOn = wave.length > 0 && one.waitUntil! <= wave.at(-1)!.waitUntil! + WAVE_MS;
    if (!goesOn && one.waitUntil! > newest.at + HERD_MS) break;
    if (!goesOn) wave = [];
    wave.push(one); // a copy for each would take a time that grows with the square of their number
  }
  const connections = new Set<number>();
  return wave.filter(({ connection }) => !connections.has(connection) && connections.add(connection));
}
