/** One request and its reply, or the reason why there is none. */
import { PetstoreError, type PetstoreErrorCode, saidBy, whyNotSent } from './errors.ts';
import { isId, parseJson } from './ids.ts';

/** `globalThis.fetch`, or a function of the same kind: also undici's, whose Headers and Response are other classes. */
export type Fetch = (url: string, init: FetchInit) => Promise<FetchReply>;
type FetchInit = {
  method: string;
  headers: Record<string, string>;
  body?: string;
  signal: AbortSignal;
  redirect: 'manual';
};
type FetchReply = { readonly status: number; readonly headers: Pick<Headers, 'get'>; readonly body: unknown };

export interface Asked {
  operation: string;
  method: 'GET' | 'POST' | 'PUT' | 'PATCH';
  url: URL;
  headers: Headers;
  body: string | undefined;
}

/** One try of a request: the part of the reply that has come, and the time that it may take. */
export type Try = Asked & { seen: Reply; timeoutMs: number };

/** `fault`: the reply is an error, or not the expected one. `json`: undefined if the caller's copy is current (304). */
export type Reply = { status: number; headers: Headers; json?: unknown; fault?: PetstoreError };

/** A page of 100 animals with the longest names, every character escaped, is well below this. */
export const MAX_REPLY_BYTES = 1_048_576;

/**
 * Never rejects. The head counts even if the body broke off: a 429 is to be obeyed all the same. It ends with `whole`
 * or after `timeoutMs`, even if the caller's fetch does not.
 */
export async function exchange(send: Fetch, asked: Try, whole: AbortSignal): Promise<Reply> {
  const { seen, timeoutMs } = asked;
  const attempt = new AbortController();
  const stop = () => attempt.abort(whole.reason);
  whole.addEventListener('abort', stop);
  const late = () => attempt.abort(new PetstoreError('timeout', `no complete reply within ${timeoutMs} ms`));
  const timer = setTimeout(late, timeoutMs);
  try {
    const bytes = await Promise.race([endOf(attempt.signal), receive(send, asked, attempt.signal)]);
    return judge(asked, bytes);
  } catch (error) {
    attempt.abort(); // ends a fetch that is still under way
    if (error instanceof PetstoreError) return failed(seen, error.code, error.message);
    return failed(seen, 'network', reasonOf(asked.url, seen, error), error);
  } finally {
    clearTimeout(timer);
    whole.removeEventListener('abort', stop);
  }
}

/** Rejects with the reason of the signal, when it fires. */
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

async function receive(send: Fetch, asked: Try, signal: AbortSignal): Promise<Uint8Array> {
  const { method, url, body, seen } = asked;
  const headers = Object.fromEntries(asked.headers); // a copy, since the caller's fetch may change them
  const init = { method, headers, signal, redirect: 'manual' as const, ...(body !== undefined && { body }) };
  const reply: Partial<Response> = Object(await send(url.href, init));
  if (!isResponse(reply)) {
    // A browser does not tell where a redirect leads.
    const got = reply.type === 'opaqueredirect' ? 'a redirect' : 'a value that is no Response';
    throw new PetstoreError('bad_reply', `${got} from ${method} ${url.origin}${url.pathname}`);
  }
  Object.assign(seen, { status: reply.status, headers: new Headers(reply.headers) });
  const chunks: Uint8Array[] = [];
  let size = 0;
  const reader = reply.body?.getReader();
  // A stream made by the caller's fetch does not know the signal, and may have no such method.
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

/** Checked by its members: the caller's fetch may give anything, also a Response of another library. */
function isResponse({ status = 0, headers, body }: Partial<Response>): boolean {
  const isHead = Number.isInteger(status) && status >= 200 && typeof headers?.get === 'function';
  return isHead && (body === null || body === undefined || typeof body.getReader === 'function');
}

function judge({ method, url, headers: sent, seen }: Try, bytes: Uint8Array): Reply {
  const { status, headers } = seen;
  if (status === 304 && sent.has('If-None-Match')) return seen;
  const type = bytes.length === 0 ? 'with an empty body' : (headers.get('content-type')?.split(';')[0] ?? 'of no type');
  const leads = headers.has('location') && status < 400 ? `, leading to ${headers.get('location')}` : '';
  const told = `${status} ${type} from ${method} ${url.origin}${url.pathname}${leads}`;
  let json: unknown;
  try {
    json = parseJson(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (error) {
    return failed(seen, 'bad_reply', `${told}, not the service's`, error);
  }
  // Requests with a query are those for lists.
  const isRight = url.search === '' ? isThing(json) : Array.isArray(json) && json.every(isThing);
  if (isRight && status >= 200 && status < 300) return { ...seen, json };
  const { code, message } = (json ?? {}) as { code?: unknown; message?: unknown };
  if (status >= 400 && typeof code === 'string' && typeof message === 'string') return failed(seen, code, message);
  return failed(seen, 'bad_reply', `${told}, not the expected reply`);
}

/** Everything of the service has an id; replies of others seldom have one that could be meant so. */
const isThing = (value: unknown) => typeof value === 'object' && value !== null && 'id' in value && isId(value.id);

function failed(seen: Reply, code: PetstoreErrorCode, message: string, cause?: unknown): Reply {
  const { status, headers } = seen;
  const facts = { status, requestId: requestIdIn(headers), retryAfter: retryAfterIn(headers), cause };
  return { ...seen, fault: new PetstoreError(code, message, facts) };
}

/** An empty X-Request-Id counts as none: a proxy may have added it. */
export const requestIdIn = (headers: Headers): string | undefined => headers.get('x-request-id') || undefined;

/** Seconds, also for a date, which is compared with the Date of the reply: clocks may differ. */
function retryAfterIn(headers: Headers): number | undefined {
  const told = headers.get('retry-after') ?? '';
  if (/^\d+$/.test(told)) return Math.min(Number(told), Number.MAX_SAFE_INTEGER);
  const end = /^[A-Z][a-z]+, /.test(told) ? Date.parse(told) : Number.NaN;
  const now = Date.parse(headers.get('date') ?? '') || Date.now();
  return Number.isNaN(end) ? undefined : Math.max(0, Math.ceil((end - now) / 1_000));
}

/** One window of the key's limits, and how long until it is full again. */
type Window = { limit: number; remaining: number; resetsInSeconds: number };

/** Both windows in a reply, and the moment it came by this machine's clock. */
export type Limits = { minute: Window; day: Window; at: Date };

/** Read from `RateLimit-Policy: "minute";q=60;w=60, "day";…` and `RateLimit: "minute";r=59;t=60, "day";…`. */
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
