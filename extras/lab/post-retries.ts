/**
 * Rules of POSTs that failed. An equal POST, of the same target and body, is a retry of it or a request of its own: the
 * Idempotency-Keys tell, and whether it was on its way before the other was answered.
 */
import { hasEnded, type RequestRecord, type Requests } from './record.ts';
import type { Finding } from './rule.ts';
import { isFailure, isRefusal, isTooEarly, wasSentBeforeReply } from './waits.ts';

const RETRY_WITHIN_MS = 60_000;
/** A failed POST is given up if it did not come again so long after its failure, or after its Retry-After. */
const GIVEN_UP_AFTER_MS = 5_000;

/** Replies that say nothing of the try before, which may have been performed. */
const isPutOff = ({ status }: RequestRecord) => status === 429;
const hasFailed = (post: RequestRecord) => isFailure(post) || post.status === 429;

/** A retry must have the key of the POST that failed. An equal one under another key, in its place, is bad. */
export function judgeIdempotency(requests: Requests): Finding[] {
  return judgeReplacements(requests, failedBefore, isFailure);
}

/** A POST under a new key, before the Retry-After of an equal one is over, looks like a retry of that one. */
export function judgeEarlyUnderNewKey(requests: Requests): Finding[] {
  return judgeReplacements(requests, refusedBefore, hasFailed);
}

/** Finds the POST in whose place this one seems to come; none of `replaced`. */
type Find = (post: RequestRecord, before: Requests, replaced: ReadonlySet<RequestRecord>) => RequestRecord | undefined;

/**
 * A POST that failed accounts for one under another key at most. That is a request of its own if the failed one comes
 * again under its own key, and it too, if it failed.
 */
function judgeReplacements(requests: Requests, find: Find, fails: (post: RequestRecord) => boolean): Finding[] {
  const replaced = new Set<RequestRecord>();
  return requests.flatMap((post): Finding[] => {
    if (post.method !== 'POST' || !hasEnded(post)) return [];
    const equal = requests.filter(({ content }) => content === post.content);
    const failed = find(post, equal.slice(0, equal.indexOf(post)), replaced);
    if (failed === undefined) return [];
    if (post.key !== undefined && post.key === failed.key) return [{ request: post, is: 'good' }];
    replaced.add(failed);
    const comesAgain = (one: RequestRecord) =>
      one.key !== undefined &&
      equal.some((other) => other !== one && other.key === one.key && other.at >= one.at && !isPutOff(other));
    const isItsOwn = post.key !== undefined && comesAgain(failed) && (!fails(post) || comesAgain(post));
    return [{ request: post, is: isItsOwn ? 'good' : 'bad' }];
  });
}

/** The failed POST that this one retries. Once a POST was answered, an equal one is a new request. */
function failedBefore(post: RequestRecord, before: Requests, replaced: ReadonlySet<RequestRecord>) {
  const tries = before.filter((one) => !isPutOff(one) && one.endedAt <= post.at && !wasSentBeforeReply(post, one));
  const own = tries.findLast(({ key }) => key !== undefined && key === post.key);
  const last = own ?? tries.at(-1);
  const isOpen = last !== undefined && isFailure(last) && post.at <= last.endedAt + RETRY_WITHIN_MS;
  return isOpen && (last === own || !replaced.has(last)) ? last : undefined;
}

/** The latest refusal for which a POST under a new key is too early, if it was not retried since. */
function refusedBefore(post: RequestRecord, before: Requests, replaced: ReadonlySet<RequestRecord>) {
  if (post.key === undefined || before.some(({ key }) => key === post.key)) return undefined;
  return before.findLast((one, i) => {
    const isOpen = isRefusal(one) && one.endedAt <= post.at && isTooEarly(post, one) && !wasSentBeforeReply(post, one);
    if (!isOpen || one.key === undefined || replaced.has(one)) return false;
    return !before.some(({ key }, later) => later > i && key === one.key);
  });
}

/** The first 422 may be a mistake; from the second on, the client uses one key for different requests. */
export function judgeSharedKey(requests: Requests): Finding[] {
  const [, ...more] = requests.filter(({ method, status }) => method === 'POST' && status === 422);
  return more.map((request) => ({ request, is: 'bad' }));
}

/** Judges each POST that failed, under its first failure: good once it was answered, bad if it did not come in time. */
export function judgeFinished(requests: Requests, now: number): Finding[] {
  const { finished, open } = failedPosts(requests);
  const givenUp = open.filter(({ until }) => until <= now);
  return [...finished, ...givenUp.map(({ first, last }): Finding => ({ request: first, is: 'bad', shownBy: last }))];
}

/** How long a failed POST may still come again. */
export function openMs(requests: Requests, now: number): number {
  const ends = failedPosts(requests).open.map(({ until }) => until);
  return Math.max(now, ...ends.filter(Number.isFinite)) - now;
}

/** The POSTs that failed, with all their tries: those that were answered in the end, and those that are open. */
function failedPosts(requests: Requests) {
  const finished: Finding[] = [];
  const open = new Map<string, { first: RequestRecord; last: RequestRecord }>();
  // A 429 speaks for the whole key: no POST can come again before its time.
  let limitedUntil = 0;
  for (const post of requests) {
    if (post.status === 429) limitedUntil = Math.max(limitedUntil, post.retryAt ?? 0);
    if (post.method !== 'POST' || post.isBodyUnknown) continue;
    const failed = open.get(post.content);
    if (hasFailed(post)) {
      open.set(post.content, { first: failed?.first ?? post, last: post });
    } else if (failed !== undefined && isRetry(post, failed.last)) {
      finished.push({ request: failed.first, is: 'good' });
      open.delete(post.content);
    }
  }
  const untilOf = ({ endedAt, retryAt = 0 }: RequestRecord) =>
    Math.max(endedAt, retryAt, limitedUntil) + GIVEN_UP_AFTER_MS;
  return { finished, open: [...open.values()].map((tries) => ({ ...tries, until: untilOf(tries.last) })) };
}

/** An equal POST at the same time is another request, unless it has the same Idempotency-Key. */
const isRetry = (post: RequestRecord, last: RequestRecord) =>
  post.at >= last.endedAt || (post.key !== undefined && post.key === last.key);
