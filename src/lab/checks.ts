/**
 * What a good client does, as ten questions. Each is a pure function: what the newest request says about its client, in
 * view of those that arrived before it. The answers are counted, so that they outlive the requests.
 */
import type { Recorded } from './recorded.ts';

const OTHER_CONNECTION_MS = 1_000;
/** Timers fire a fraction early. */
const TIMER_SLACK_MS = 5;
const AGAIN_MS = 60_000;
const GROWTH = 1.5;
/** Less is no wait, but how long a request takes: it grows and shrinks by chance. */
const LEAST_WAIT_MS = 10;
const FAILURES_IN_A_ROW = 3;
const HERD_CONNECTIONS = 8;
const HERD_MS = 100;
/** Refusals that told about the same time are one wave. */
const WAVE_MS = 1_000;
const HOPELESS = [400, 401, 404, 410, 422];
const HOPELESS_TIMES = 3;
const REUSE_MS = 5_000;
const LINKS = 8;
const REDUNDANT_MS = 1_000;

type Judgement = 'good' | 'bad' | undefined;

export interface Check {
  id: string;
  weight: number;
  /** The best grade that is left when it fails. */
  cap?: 'C' | 'D' | 'F';
  /** How much of what was judged may be bad; nothing, if absent. */
  share?: number;
  /** It warns and never fails. */
  warns?: boolean;
  judge(newest: Recorded, before: readonly Recorded[]): Judgement;
  /** What is judged and what a bad one did, for `why`: "3 of 12 requests … came …". */
  judged: string;
  bad: string;
}

const isFailure = ({ isLost, status }: Recorded) => isLost || (status !== null && status >= 500);
const hasToWait = ({ waitUntil }: Recorded) => waitUntil !== undefined;

function judgeRetryAfter(newest: Recorded, before: readonly Recorded[]): Judgement {
  const told = before.filter((one) => hasToWait(one) && one.endedAt <= newest.at);
  const wasTold = (one: Recorded) =>
    one.connection === newest.connection || newest.at >= one.endedAt + OTHER_CONNECTION_MS;
  const isEarly = (one: Recorded) => newest.at < one.waitUntil! - TIMER_SLACK_MS;
  if (told.some((one) => isEarly(one) && wasTold(one))) return 'bad';
  return told.some((one) => !isEarly(one)) ? 'good' : undefined;
}

/** Only the latest of the same counts: behind a reply that came, the same POST is a new wish. */
function judgeIdempotency(newest: Recorded, before: readonly Recorded[]): Judgement {
  if (newest.method !== 'POST') return undefined;
  const last = before.findLast((one) => one.same === newest.same);
  if (last === undefined || !isFailure(last)) return undefined;
  if (newest.at < last.endedAt || newest.at > last.endedAt + AGAIN_MS) return undefined;
  return newest.key !== undefined && newest.key === last.key ? 'good' : 'bad';
}

/**
 * Judges each gap against the one before it. More than half of them under 1.5 is a median under 1.5, over all rows of
 * failures together: so a client that waits at random is not condemned for one row.
 */
function judgeBackoff(newest: Recorded, before: readonly Recorded[]): Judgement {
  const row = rowOfFailures(newest, before);
  const failures = isUntold(newest) ? row.length : row.length - 1;
  if (failures < FAILURES_IN_A_ROW) return undefined;
  const [first, second, third] = row.slice(-3);
  const waited = (from: Recorded, to: Recorded) => Math.max(to.at - from.endedAt, LEAST_WAIT_MS);
  return waited(second, third) >= GROWTH * waited(first, second) ? 'good' : 'bad';
}

const isUntold = (one: Recorded) => isFailure(one) && !hasToWait(one);

/** The newest request, behind the failures in a row that it comes after; those sent side by side are no row. */
function rowOfFailures(newest: Recorded, before: readonly Recorded[]): Recorded[] {
  const row = [newest];
  for (const one of before.toReversed()) {
    if (one.same !== newest.same || one.endedAt > row[0].at) continue;
    if (!isUntold(one)) break;
    row.unshift(one);
  }
  return row;
}

/**
 * The n-th to come back is held against the n-th moment that was told, since a client that waits for long comes back on
 * another connection. The wave is bad as soon as over half of its connections were on the dot, good when all are back.
 */
function judgeHerd(newest: Recorded, before: readonly Recorded[]): Judgement {
  const moments = waveBefore(newest.at + HERD_MS, before);
  if (moments.length < HERD_CONNECTIONS) return undefined;
  const back = [...before, newest].filter((one) => one.at >= moments[0] - HERD_MS).slice(0, moments.length);
  if (back.at(-1) !== newest) return undefined;
  const isPunctual = (at: number, place: number) => Math.abs(at - moments[place]) <= HERD_MS;
  const punctual = back.filter(({ at }, place) => isPunctual(at, place)).length;
  const half = moments.length / 2;
  if (punctual > half) return isPunctual(newest.at, back.length - 1) && punctual - 1 <= half ? 'bad' : undefined;
  return back.length === moments.length ? 'good' : undefined;
}

/** The newest moments that were told about the same time and begin before `at`: one a connection, in order. */
function waveBefore(at: number, before: readonly Recorded[]): number[] {
  const told = before.filter(hasToWait).sort((a, b) => a.waitUntil! - b.waitUntil!);
  let wave: Recorded[] = [];
  for (const one of told) {
    const goesOn = wave.length > 0 && one.waitUntil! <= wave.at(-1)!.waitUntil! + WAVE_MS;
    if (!goesOn && one.waitUntil! > at) break;
    wave = goesOn ? [...wave, one] : [one];
  }
  return [...new Map(wave.map((one) => [one.connection, one.waitUntil!])).values()].sort((a, b) => a - b);
}

function judgeHopeless(newest: Recorded, before: readonly Recorded[]): Judgement {
  const isHopeless = ({ status }: Recorded) => status !== null && HOPELESS.includes(status);
  const answered = before.filter((one) => one.endedAt <= newest.at);
  const same = answered.filter((one) => one.same === newest.same);
  const inVain = same.length - 1 - same.findLastIndex((one) => !isHopeless(one));
  if (inVain >= HOPELESS_TIMES) return 'bad';
  return inVain === 0 && answered.some(isHopeless) ? 'good' : undefined;
}

/** Where every connection is busy, a new one is no fault; nor is one in place of one that was lost. */
function judgeReuse(newest: Recorded, before: readonly Recorded[]): Judgement {
  const latest = new Map(before.map((one) => [one.connection, one]));
  const isIdle = ({ isKept, endedAt }: Recorded) => isKept && endedAt <= newest.at && newest.at - endedAt < REUSE_MS;
  if (![...latest.values()].some(isIdle)) return undefined;
  if (!newest.opens) return 'good';
  let notReplaced = 0;
  for (const { opens, isKept, endedAt } of before) {
    if (opens && notReplaced > 0) notReplaced--;
    if (!isKept && endedAt <= newest.at) notReplaced++;
  }
  return notReplaced > 0 ? undefined : 'bad';
}

function judgePaging(newest: Recorded, before: readonly Recorded[]): Judgement {
  if (newest.method !== 'GET' || newest.page === undefined) return undefined;
  const links = before.filter((one) => one.next !== undefined && one.endedAt <= newest.at).slice(-LINKS);
  return links.some((one) => one.next === newest.page) ? 'good' : 'bad';
}

/** Also where its client had what it asked for already: it asked all the same. */
const isRead = ({ status }: Recorded) => status === 200 || status === 304;

function judgeRedundant(newest: Recorded, before: readonly Recorded[]): Judgement {
  if (newest.method !== 'GET' || newest.isLost || !isRead(newest)) return undefined;
  const isRepeated = before.some(
    (one) =>
      one.same === newest.same &&
      isRead(one) &&
      !one.isLost &&
      one.petsVersion === newest.petsVersion &&
      newest.at - one.at < REDUNDANT_MS,
  );
  return isRepeated ? 'bad' : 'good';
}

/** Every whole reply of that operation says so. */
function judgeDeprecated(newest: Recorded, before: readonly Recorded[]): Judgement {
  const asks = (one: Recorded) => one.operation === 'getPet';
  if (!asks(newest)) return undefined;
  return before.some((one) => asks(one) && !one.isLost && one.endedAt <= newest.at) ? 'bad' : 'good';
}

export const CHECKS: readonly Check[] = [
  {
    ...{ id: 'retry_after', weight: 25, cap: 'D', judge: judgeRetryAfter },
    judged: 'requests after a 429 or 503',
    bad: 'came before the time that it told',
  },
  {
    ...{ id: 'idempotency', weight: 25, cap: 'C', judge: judgeIdempotency },
    judged: 'POSTs sent again after a lost reply or a 5xx',
    bad: 'had no Idempotency-Key, or a new one',
  },
  {
    ...{ id: 'backoff', weight: 10, share: 0.5, judge: judgeBackoff },
    judged: 'waits in rows of three or more failures',
    bad: `were less than ${GROWTH} times as long as the one before`,
  },
  {
    ...{ id: 'herd', weight: 10, judge: judgeHerd },
    judged: `times that ${HERD_CONNECTIONS} or more connections were refused together`,
    bad: `over half came back within ${HERD_MS} ms of the time told`,
  },
  {
    ...{ id: 'hopeless', weight: 10, judge: judgeHopeless },
    judged: 'requests after a 400, 401, 404, 410 or 422',
    bad: `were what it refused, for the third time or more`,
  },
  {
    ...{ id: 'reuse', weight: 10, share: 0.1, judge: judgeReuse },
    judged: 'requests less than 5 s after a reply whose connection was still open',
    bad: 'came on a new connection',
  },
  {
    ...{ id: 'paging', weight: 5, judge: judgePaging },
    judged: 'requests with `after`',
    bad: `asked for what none of the last ${LINKS} Links gave`,
  },
  {
    ...{ id: 'redundant', weight: 5, share: 0.2, judge: judgeRedundant },
    judged: 'GETs',
    bad: 'repeated a target within a second while no animal had changed',
  },
  {
    ...{ id: 'deprecated', weight: 0, warns: true, judge: judgeDeprecated },
    judged: 'requests for GET /v1/pets/{petId}',
    bad: 'came after a reply had said that it is deprecated',
  },
  {
    ...{ id: 'ban', weight: 0, cap: 'F', judge: ({ bans }) => (bans ? 'bad' : 'good') },
    judged: 'requests',
    bad: 'began a ban',
  },
];
