/** Rules of waits: as long as Retry-After says, otherwise longer each time. And what a failure is, for all rules. */
import { hasEnded, type RequestRecord, type Requests } from './record.ts';
import type { Finding } from './rule.ts';

/** A request on a connection opened so long after a refusal was not on its way when the refusal came. */
const KNOWN_TO_ALL_MS = 1_000;
/** The first request of a connection was the reason to open it if it came so soon. */
const OPENED_FOR_MS = 1_000;
/** After so long, what a pipelining client or a proxy had sent before it read the refusal has arrived. */
const READ_WITHIN_MS = 100;
/** Timers fire a fraction early. */
const TIMER_SLACK_MS = 5;
const FAILURES_IN_A_ROW = 3;
export const LONG_ROW = 5;
const MIN_WAIT_MS = 50;
const GROWTH = 1.5;

export const isFailure = ({ isLost, status }: RequestRecord): boolean => isLost || (status !== null && status >= 500);

/** A 429 or 503 with Retry-After. */
export const isRefusal = ({ status, retryAt }: RequestRecord): boolean =>
  retryAt !== undefined && (status === 429 || status === 503);

/** Also a 500, 502 or 504 with Retry-After, which need not be heeded. */
const isOtherFailure = (request: RequestRecord) =>
  (isFailure(request) || request.status === 429) && !isRefusal(request);
const isFailureWithoutTime = (request: RequestRecord) => isOtherFailure(request) && request.retryAt === undefined;

/**
 * Whether a request was sent before the reply to the other had left, though it was read later: it came first on a
 * connection that was opened for it before.
 */
export const wasSentBeforeReply = ({ opens, connectedAt, at }: RequestRecord, { endedAt }: RequestRecord): boolean =>
  opens && connectedAt <= endedAt && at - connectedAt <= OPENED_FOR_MS;

export const isTooEarly = ({ at }: RequestRecord, { retryAt }: RequestRecord): boolean =>
  retryAt !== undefined && at < retryAt - TIMER_SLACK_MS;

/** A 429 speaks for the whole key, a 503 for its operation alone. */
const isCovered = (request: RequestRecord, refusal: RequestRecord) =>
  refusal.status === 429 || request.operation === refusal.operation;

/** Equal POSTs, each under a key of its own, are judged by `judgeEarlyUnderNewKey`. */
const isSameAgain = (request: RequestRecord, { content, key }: RequestRecord) =>
  request.content === content && (request.key === key || request.key === undefined || key === undefined);

/**
 * Whether the sender of a request can know of the refusal: it is the same request again, or it is on the same
 * connection, or on one that was opened afterwards. Another process, on an older connection of its own, cannot.
 */
function canKnow(request: RequestRecord, refusal: RequestRecord): boolean {
  if (request.at < refusal.endedAt || wasSentBeforeReply(request, refusal)) return false;
  if (isSameAgain(request, refusal)) return true;
  if (request.connection === refusal.connection) {
    const mayHaveBeenSentBefore = request.isPipelined || request.isProxied;
    return !mayHaveBeenSentBefore || request.at > refusal.endedAt + READ_WITHIN_MS;
  }
  return request.connectedAt > refusal.endedAt && request.at >= refusal.endedAt + KNOWN_TO_ALL_MS;
}

/** Judges each refusal once: bad if any request came too early, good if those that came did not. */
export function judgeRetryAfter(requests: Requests): Finding[] {
  return requests.flatMap((refusal, i): Finding[] => {
    if (!isRefusal(refusal)) return [];
    const knowing = requests
      .slice(i + 1)
      .filter((request) => hasEnded(request) && isCovered(request, refusal) && canKnow(request, refusal));
    if (knowing.length === 0) return [];
    const early = knowing.find((request) => isTooEarly(request, refusal));
    return [{ request: refusal, is: early === undefined ? 'good' : 'bad', shownBy: early }];
  });
}

/** The rows of failures, each with the request that came after it; requests sent side by side are no row. */
function rowsOf(requests: Requests, isInRow: (request: RequestRecord) => boolean): RequestRecord[][] {
  const rows: RequestRecord[][] = [];
  const used = new Set<RequestRecord>();
  for (const [end, last] of [...requests.entries()].reverse()) {
    if (!hasEnded(last) || used.has(last)) continue;
    const row = [last];
    for (let i = end - 1; i >= 0; i--) {
      const one = requests[i];
      if (one.content !== last.content || one.endedAt > row[0].at || wasSentBeforeReply(row[0], one)) continue;
      if (!isInRow(one)) break;
      row.unshift(one);
    }
    const failures = isInRow(last) ? row.length : row.length - 1;
    if (failures < FAILURES_IN_A_ROW) continue;
    rows.unshift(row);
    for (const one of row) used.add(one);
  }
  return rows;
}

const waitsIn = (row: Requests) => row.slice(1).map((request, i) => request.at - row[i].endedAt);

/** Judges each wait of a row, also the last, before a success. */
export function judgeWaits(requests: Requests): Finding[] {
  return rowsOf(requests, isOtherFailure).flatMap((row) =>
    waitsIn(row).map((ms, i): Finding => ({ request: row[i + 1], is: ms < MIN_WAIT_MS ? 'bad' : 'good' })),
  );
}

/** The finding on a row is one on its first request. */
function judgeRows(rows: readonly RequestRecord[][], isGood: (waits: number[]) => boolean): Finding[] {
  return rows.map((row) => ({ request: row[0], is: isGood(waitsIn(row)) ? 'good' : 'bad', shownBy: row.at(-1) }));
}

/** Bad without any wait: random waits are not all so short. */
export function judgeLongRows(requests: Requests): Finding[] {
  const long = rowsOf(requests, isOtherFailure).filter(({ length }) => length >= LONG_ROW);
  return judgeRows(long, (waits) => waits.some((ms) => ms >= MIN_WAIT_MS));
}

/**
 * Compares the longest wait of a row's second half with the shortest of its first (the one in the middle is in both),
 * so that random waits that grow on average seldom count as not growing.
 */
export function judgeGrowth(requests: Requests): Finding[] {
  return judgeRows(rowsOf(requests, isFailureWithoutTime), (waits) => {
    const half = Math.ceil(waits.length / 2);
    return Math.max(...waits.slice(-half)) >= GROWTH * Math.min(...waits.slice(0, half));
  });
}
