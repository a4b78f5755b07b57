/** What a reply, or the lack of one, means: is it worth sending again, and may the thing have been done? */
import { type Facts, Failure } from './errors.ts';
import type { Reply } from './exchange.ts';
import { textOf } from './shapes.ts';

/** Refusals that pass; before the first three of them nothing was done. */
const PASSING = new Set(['rate_limited', 'request_timeout', 'unavailable', 'outcome_unknown', 'idempotency_in_flight']);
const UNCLEAR = new Set(['outcome_unknown', 'idempotency_in_flight', 'internal_error']);
/** What stands between may answer with these in the service's place, in its own words. */
const PASSING_BETWEEN = new Set([408, 429, 502, 503, 504]);
/** Errors that only connecting can end in: nothing was sent. */
const NEVER_SENT = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT']);

/** Undefined for a reply that is none. */
export function refusalIn(reply: Reply, waitOutBans: boolean): Failure | undefined {
  const { status, json, flaw } = reply;
  const isSuccess = status >= 200 && status < 300;
  if (isSuccess && flaw === undefined) return undefined;
  const code = textOf(json, 'code');
  const message = textOf(json, 'message');
  if (status >= 400 && code !== undefined && message !== undefined) {
    const again = PASSING.has(code) || (code === 'key_banned' && waitOutBans);
    return new Failure(code, message, { ...factsOf(reply), again, unclear: UNCLEAR.has(code) });
  }
  const unclear = isSuccess || status >= 500 || status === 408;
  const again = PASSING_BETWEEN.has(status);
  const said = `the reply (status ${status}) is not the service's: ${flaw === undefined ? 'no Error body' : 'not JSON'}`;
  return new Failure('bad_reply', said, { ...factsOf(reply), cause: flaw, again, unclear });
}

export function factsOf({ status, headers }: Reply): Facts {
  return { status, requestId: headers.get('x-request-id'), retryAfter: retryAfterIn(headers) };
}

/** Seconds. A date is measured by the replying machine's own clock, where it tells it. */
function retryAfterIn(headers: Map<string, string>): number | undefined {
  const said = headers.get('retry-after');
  const seconds = wholeNumber(said);
  if (said === undefined || seconds !== undefined) return seconds;
  const then = Date.parse(said);
  const now = Date.parse(headers.get('date') ?? '');
  if (Number.isNaN(then)) return undefined;
  return Math.max(0, Math.ceil((then - (Number.isNaN(now) ? Date.now() : now)) / 1_000));
}

export function wholeNumber(text: string | undefined): number | undefined {
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined;
}

/** There is no reply, or not a whole one. */
export function brokenOff(cause: Error & { code?: string }): Failure {
  const { code = '', message } = cause;
  if (code === 'UND_ERR_INVALID_ARG') return new Failure('invalid_argument', message, { cause });
  if (code === 'UND_ERR_CLOSED' || code === 'UND_ERR_DESTROYED') {
    return new Failure('closed', 'the dispatcher is closed', { cause });
  }
  const said = `no whole reply: ${message || code}`;
  return new Failure('network', said, { cause, again: true, unclear: !NEVER_SENT.has(code) });
}
