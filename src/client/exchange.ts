/** One request, its whole reply, and what that means: is it worth sending again, and may the thing have been done? */
import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import { JsonError, type JsonValue, readJson } from '../json/reader.ts';
import { type Facts, Failure } from './errors.ts';
import { member } from './shapes.ts';

/** A page of 100 animals with the longest names, every character escaped, is well below. */
export const MAX_REPLY_BYTES = 1_048_576;

/** Refusals that pass; before the first three of them nothing was done. */
const PASSING = new Set(['rate_limited', 'request_timeout', 'unavailable', 'outcome_unknown', 'idempotency_in_flight']);
const UNCLEAR = new Set(['outcome_unknown', 'idempotency_in_flight', 'internal_error']);
/** What stands between may answer with these in the service's place, in its own words. */
const PASSING_BETWEEN = new Set([408, 429, 502, 503, 504]);
/** Errors that only connecting can end in: nothing was sent. */
const NEVER_SENT = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT']);

export interface Asked {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH';
  url: URL;
  body?: string;
  idempotencyKey?: string;
}

export interface Reply {
  status: number;
  headers: IncomingHttpHeaders;
  /** Null where the body is not JSON: `flaw` says why. */
  json: JsonValue;
  flaw?: unknown;
}

/**
 * The body is read to its end, or the connection is destroyed: no socket is left half read. undici's own limits of time
 * are off, because they watch single steps (a reply that drips keeps them content): the signal is the one limit.
 * Whatever goes wrong is thrown as a Failure.
 */
export async function exchange(dispatcher: Dispatcher, key: string, asked: Asked, signal: AbortSignal): Promise<Reply> {
  const { method, url, body, idempotencyKey } = asked;
  const headers: Record<string, string> = { authorization: `Bearer ${key}`, accept: 'application/json' };
  if (body !== undefined) headers['content-type'] = 'application/json';
  if (idempotencyKey !== undefined) headers['idempotency-key'] = idempotencyKey;
  const options = { origin: url.origin, path: url.pathname + url.search, method, headers, body, signal };
  try {
    signal.throwIfAborted();
    // undici hears of the signal only once it has a connection; who aborts is not to wait for that.
    const aborted = new Promise<never>((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason));
    });
    const response = await Promise.race([
      dispatcher.request({ ...options, headersTimeout: 0, bodyTimeout: 0 }),
      aborted,
    ]);
    return await wholeReply(response);
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    throw error instanceof Failure ? error : brokenOff(error as Error & { code?: string });
  }
}

async function wholeReply({ statusCode: status, headers, body }: Dispatcher.ResponseData): Promise<Reply> {
  try {
    return { status, headers, json: readJson(await readAll(body, status)) };
  } catch (flaw) {
    // A 429 is obeyed although its body broke off: status and headers have said enough.
    if (!(flaw instanceof JsonError) && status !== 429) throw flaw;
    return { status, headers, json: null, flaw };
  }
}

async function readAll(body: AsyncIterable<Buffer>, status: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.length;
    // Leaving the loop destroys the stream, and the socket with it.
    if (length > MAX_REPLY_BYTES) {
      throw new Failure('bad_reply', `the reply has more than ${MAX_REPLY_BYTES} bytes`, { status, unclear: true });
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** There is no reply, or not a whole one. */
function brokenOff(cause: Error & { code?: string }): Failure {
  const { code = '', message } = cause;
  if (code === 'UND_ERR_INVALID_ARG') return new Failure('invalid_argument', message, { cause });
  if (code === 'UND_ERR_CLOSED' || code === 'UND_ERR_DESTROYED') {
    return new Failure('closed', 'the dispatcher is closed', { cause });
  }
  const said = `no whole reply: ${message || code}`;
  return new Failure('network', said, { cause, again: true, unclear: !NEVER_SENT.has(code) });
}

/** Undefined for a reply that is none. */
export function refusalIn(reply: Reply, waitOutBans: boolean): Failure | undefined {
  const { status, json, flaw } = reply;
  const isSuccess = status >= 200 && status < 300;
  if (isSuccess && flaw === undefined) return undefined;
  const [code, message] = [member(json, 'code'), member(json, 'message')];
  if (status >= 400 && typeof code === 'string' && typeof message === 'string') {
    const again = PASSING.has(code) || (code === 'key_banned' && waitOutBans);
    return new Failure(code, message, { ...factsOf(reply), again, unclear: UNCLEAR.has(code) });
  }
  const unclear = isSuccess || status >= 500 || status === 408;
  const again = PASSING_BETWEEN.has(status);
  const said = `the reply (status ${status}) is not the service's: ${flaw === undefined ? 'no Error body' : 'not JSON'}`;
  return new Failure('bad_reply', said, { ...factsOf(reply), cause: flaw, again, unclear });
}

export function factsOf(reply: Reply): Facts {
  return { status: reply.status, requestId: header(reply, 'x-request-id'), retryAfter: retryAfterIn(reply) };
}

/** Seconds. A date is measured by the replying machine's own clock, where it tells it. */
function retryAfterIn(reply: Reply): number | undefined {
  const said = header(reply, 'retry-after');
  const seconds = wholeNumber(said);
  if (said === undefined || seconds !== undefined) return seconds;
  const then = Date.parse(said);
  const now = Date.parse(header(reply, 'date') ?? '');
  if (Number.isNaN(then)) return undefined;
  return Math.max(0, Math.ceil((then - (Number.isNaN(now) ? Date.now() : now)) / 1_000));
}

/** One that came several times is a list. */
export function header({ headers }: Reply, name: string): string | undefined {
  return headers[name]?.toString();
}

export function wholeNumber(text: string | undefined): number | undefined {
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined;
}
