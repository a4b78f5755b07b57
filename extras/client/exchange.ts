/** One request and its reply, or the reason why there is none. */
import { messageOf, PetstoreError, type PetstoreErrorCode, whyNotSent } from './errors.ts';
import { requestIdIn, retryAfterIn } from './headers.ts';
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

export interface Request {
  operation: string;
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  url: URL;
  headers: Headers;
  body: string | undefined;
  expected: Expected;
}

/** What a reply that succeeds has: one thing of the service, a list of them, or no body. */
export type Expected = 'one' | 'list' | 'nothing';

/** The head counts even if the body broke off: a 429 is to be obeyed all the same. Status 0: none has come. */
export interface Head {
  status: number;
  headers: Headers;
}

/** `error`: there is no reply, or not the one that was wanted. `json`: undefined after a 204 or 304. */
export type Reply = Head & { json?: unknown; error?: PetstoreError };

/** A page of 100 animals with the longest names, every character escaped, is well below this. */
export const MAX_REPLY_BYTES = 1_048_576;

/** Never rejects. `head` is filled as soon as there is one, for a caller that does not wait until the end. */
export async function exchange(
  fetch: Fetch,
  request: Request,
  head: Head,
  { timeoutMs, signal }: { timeoutMs: number; signal: AbortSignal },
): Promise<Reply> {
  const attempt = new AbortController();
  const stop = () => attempt.abort(signal.reason);
  signal.addEventListener('abort', stop);
  const tooLate = new PetstoreError('timeout', `no complete reply within ${timeoutMs} ms`);
  const timer = setTimeout(() => attempt.abort(tooLate), timeoutMs);
  try {
    return judge(request, head, await receive(fetch, request, head, attempt.signal));
  } catch (thrown) {
    const error = attempt.signal.aborted ? attempt.signal.reason : thrown;
    attempt.abort(); // ends a reply that is not read to its end
    if (error instanceof PetstoreError) return failed(head, error.code, error.message);
    return failed(head, 'network', reasonOf(request.url, head, error), error);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', stop);
  }
}

function reasonOf({ origin }: URL, { status }: Head, error: unknown): string {
  const { why } = whyNotSent(error) ?? {};
  if (why !== undefined && status === 0) return `cannot reach ${origin}: ${why}; nothing was sent`;
  return `the connection to ${origin} broke before a complete reply came: ${messageOf(error)}`;
}

async function receive(fetch: Fetch, request: Request, head: Head, signal: AbortSignal): Promise<Uint8Array> {
  const { method, url, body } = request;
  const headers = Object.fromEntries(request.headers); // a copy, since the caller's fetch may change them
  const init = { method, headers, signal, redirect: 'manual' as const, ...(body !== undefined && { body }) };
  const reply = (await fetch(url.href, init)) as Response;
  // A browser does not say where a redirect leads.
  if (reply.type === 'opaqueredirect') {
    throw new PetstoreError('bad_reply', `a redirect from ${method} ${url.origin}${url.pathname}`);
  }
  Object.assign(head, { status: reply.status, headers: new Headers(reply.headers) });
  const chunks: Uint8Array[] = [];
  let size = 0;
  const reader = reply.body?.getReader();
  for (let part = await reader?.read(); part?.value !== undefined; part = await reader?.read()) {
    chunks.push(part.value);
    size += part.value.length;
    if (size > MAX_REPLY_BYTES) throw new PetstoreError('bad_reply', `the reply has over ${MAX_REPLY_BYTES} bytes`);
  }
  const bytes = new Uint8Array(size);
  for (const chunk of chunks.toReversed()) bytes.set(chunk, (size -= chunk.length));
  return bytes;
}

function judge({ method, url, headers: sent, expected }: Request, head: Head, bytes: Uint8Array): Reply {
  const { status, headers } = head;
  if (status === 304 && sent.has('if-none-match')) return head;
  if (status === 204 && expected === 'nothing') return head;
  const type = bytes.length === 0 ? 'with an empty body' : (headers.get('content-type')?.split(';')[0] ?? 'of no type');
  const leads = headers.has('location') && status < 400 ? `, leading to ${headers.get('location')}` : '';
  const description = `${status} ${type} from ${method} ${url.origin}${url.pathname}${leads}`;
  let json: unknown;
  try {
    json = parseJson(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (error) {
    return failed(head, 'bad_reply', `${description}, not the service's`, error);
  }
  const isExpected = { one: hasId, list: isList, nothing: () => false }[expected](json);
  if (isExpected && status >= 200 && status < 300) return { ...head, json };
  const { code, message } = Object(json) as { code?: unknown; message?: unknown };
  if (status >= 400 && typeof code === 'string' && typeof message === 'string') return failed(head, code, message);
  return failed(head, 'bad_reply', `${description}, not the expected reply`);
}

/** Everything of the service has an id; replies of others seldom have one that could be meant so. */
const hasId = (value: unknown) => typeof value === 'object' && value !== null && 'id' in value && isId(value.id);
const isList = (value: unknown) => Array.isArray(value) && value.every(hasId);

function failed(head: Head, code: PetstoreErrorCode, message: string, cause?: unknown): Reply {
  const { status, headers } = head;
  const facts = { status, requestId: requestIdIn(headers), retryAfter: retryAfterIn(headers), cause };
  return { ...head, error: new PetstoreError(code, message, facts) };
}
