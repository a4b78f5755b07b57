/** One request and what its reply says, or why there is none. */
import { PetstoreError, type PetstoreErrorCode, saidBy, whyNotSent } from './errors.ts';
import { parseJson } from './ids.ts';

/** `globalThis.fetch`, or what is called as it is. */
export type Fetch = (url: string, init: FetchInit) => Promise<Response>;
type FetchInit = { method: string; headers: Headers; body?: string; signal: AbortSignal; redirect: 'manual' };

export interface Asked {
  operation: string;
  method: 'GET' | 'POST' | 'PUT' | 'PATCH';
  url: URL;
  headers: Headers;
  body: string | undefined;
}

/** With a `fault` it is not what was asked for. `json`: undefined where it is still what the caller has (304). */
export type Reply = { status: number; headers: Headers; json?: unknown; fault?: PetstoreError };

/** A page of 100 animals with the longest names, every character escaped, is well below. */
export const MAX_REPLY_BYTES = 1_048_576;

/**
 * Never rejects. What the head said is told also where the body broke off: a 429 is to be obeyed all the same. It ends
 * with `whole` or after `timeoutMs`, whether the fetch that was given ends then or not.
 */
export async function exchange(send: Fetch, asked: Asked, whole: AbortSignal, timeoutMs: number): Promise<Reply> {
  const seen: Reply = { status: 0, headers: new Headers() };
  const attempt = new AbortController();
  const stop = () => attempt.abort(whole.reason);
  whole.addEventListener('abort', stop);
  const late = () => attempt.abort(new PetstoreError('timeout', `no complete reply within ${timeoutMs} ms`));
  const timer = setTimeout(late, timeoutMs);
  try {
    const bytes = await Promise.race([endOf(attempt.signal), receive(send, asked, attempt.signal, seen)]);
    await new Promise((go) => setTimeout(go)); // until its connection is free again: else the next call opens another
    return judge(asked, seen, bytes);
  } catch (error) {
    attempt.abort(); // what is still under way is of no use to anybody
    if (error instanceof PetstoreError) return failed(seen, error.code, error.message);
    return failed(seen, 'network', reasonOf(asked.url, seen, error), error);
  } finally {
    clearTimeout(timer);
    whole.removeEventListener('abort', stop);
  }
}

/** Rejects with why the signal fired. */
export function endOf(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason));
  });
}

function reasonOf({ origin }: URL, { status }: Reply, error: unknown): string {
  const { why } = whyNotSent(error) ?? {};
  if (why !== undefined && status === 0) return `cannot reach ${origin}: ${why}; nothing was sent`;
  return `the connection to ${origin} broke before a complete reply came: ${saidBy(error)}`;
}

async function receive(send: Fetch, asked: Asked, signal: AbortSignal, seen: Reply): Promise<Uint8Array> {
  const { method, url, body } = asked;
  const headers = new Headers(asked.headers); // whoever sends them may change them
  const init = { method, headers, signal, redirect: 'manual' as const, ...(body !== undefined && { body }) };
  const reply: Partial<Response> = Object(await send(url.href, init));
  if (!isResponse(reply)) {
    const what = reply.type === 'opaqueredirect' ? 'a redirect' : 'what is no Response'; // a browser hides where to
    throw new PetstoreError('bad_reply', `${what} from ${method} ${url.origin}${url.pathname}`);
  }
  Object.assign(seen, { status: reply.status, headers: new Headers(reply.headers) });
  const chunks: Uint8Array[] = [];
  let size = 0;
  const reader = reply.body?.getReader();
  // It may be a stream of the caller's, which heard nothing of it, and may have no such method.
  const letGo = endOf(signal).catch(() => reader?.cancel());
  letGo.catch(() => {});
  for (let part = await reader?.read(); part?.done === false; part = await reader?.read()) {
    const bytes: Uint8Array | undefined = part.value;
    if (!ArrayBuffer.isView(bytes)) throw new PetstoreError('bad_reply', 'the reply is not made of bytes');
    chunks.push(bytes);
    size += bytes.length;
    if (size > MAX_REPLY_BYTES) throw new PetstoreError('bad_reply', `the reply has over ${MAX_REPLY_BYTES} bytes`);
  }
  const bytes = new Uint8Array(size);
  for (const chunk of chunks.toReversed()) bytes.set(chunk, (size -= chunk.length));
  return bytes;
}

/** A caller's fetch may give anything, and a Response of another making than this runtime's. */
function isResponse({ status = 0, headers, body }: Partial<Response>): boolean {
  const isHead = Number.isInteger(status) && status >= 200 && typeof headers?.get === 'function';
  return isHead && (body === null || body === undefined || typeof body.getReader === 'function');
}

function judge(asked: Asked, seen: Reply, bytes: Uint8Array): Reply {
  const { status, headers } = seen;
  if (status === 304 && asked.headers.has('If-None-Match')) return seen;
  const { method, url } = asked;
  const type = bytes.length === 0 ? 'with an empty body' : (headers.get('content-type')?.split(';')[0] ?? 'of no type');
  const leads = headers.has('location') && status < 400 ? `, leading to ${headers.get('location')}` : '';
  const told = `${status} ${type} from ${method} ${url.origin}${url.pathname}${leads}`;
  let json: unknown;
  try {
    json = parseJson(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (error) {
    return failed(seen, 'bad_reply', `${told}, not the service's`, error);
  }
  // What is asked with a query is a list.
  const isRight = url.search === '' ? isThing(json) : Array.isArray(json) && json.every(isThing);
  if (isRight && status >= 200 && status < 300) return { ...seen, json };
  const { code, message } = (json ?? {}) as { code?: unknown; message?: unknown };
  if (status >= 400 && typeof code === 'string' && typeof message === 'string') return failed(seen, code, message);
  return failed(seen, 'bad_reply', `${told}, not what was asked for`);
}

const isThing = (value: unknown) => typeof value === 'object' && value !== null && 'id' in value;

function failed(seen: Reply, code: PetstoreErrorCode, message: string, cause?: unknown): Reply {
  const { status, headers } = seen;
  const facts = { status, requestId: requestIdIn(headers), retryAfter: retryAfterIn(headers), cause };
  return { ...seen, fault: new PetstoreError(code, message, facts) };
}

/** An empty one names nothing: a proxy may have made it of none. */
export const requestIdIn = (headers: Headers): string | undefined => headers.get('x-request-id') || undefined;

/** Seconds, also of a date, which is held against the date that the reply bears: clocks may differ. */
function retryAfterIn(headers: Headers): number | undefined {
  const told = headers.get('retry-after') ?? '';
  if (/^\d+$/.test(told)) return Math.min(Number(told), Number.MAX_SAFE_INTEGER);
  const end = /^[A-Z][a-z]+, /.test(told) ? Date.parse(told) : Number.NaN;
  const now = Date.parse(headers.get('date') ?? '') || Date.now();
  return Number.isNaN(end) ? undefined : Math.max(0, Math.ceil((end - now) / 1_000));
}

/** One window of the key's limits, and how long until it is full again. */
type Window = { limit: number; remaining: number; resetsInSeconds: number };

/** Both windows as a reply told them, and when it came by this machine's clock. */
export type Limits = { minute: Window; day: Window; at: Date };

/** Out of `RateLimit-Policy: "minute";q=60;w=60, "day";…` and `RateLimit: "minute";r=59;t=60, "day";…`. */
export function limitsIn(headers: Headers): Limits | undefined {
  const [minute, day] = ['minute', 'day'].map((name) => {
    const numbers = ['ratelimit-policy', 'ratelimit'].map((header) => numbersOf(headers.get(header) ?? '', name));
    const { q: limit, r: remaining, t: resetsInSeconds } = Object.assign({}, ...numbers);
    const isWhole = [limit, remaining, resetsInSeconds].every(Number.isSafeInteger);
    return isWhole ? { limit, remaining, resetsInSeconds } : undefined;
  });
  return minute && day && { minute, day, at: new Date() };
}

/** `{ r: 59, t: 60 }` of the item `"minute";r=59;t=60`. */
function numbersOf(list: string, name: string): Record<string, number> {
  const item = list.split(',').find((one) => one.trim().startsWith(`"${name}";`)) ?? '';
  const parameters = item.split(';').map((one) => one.trim().split('='));
  return Object.fromEntries(parameters.filter(([, value]) => /^\d+$/.test(value)).map(([key, value]) => [key, +value]));
}
