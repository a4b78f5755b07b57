/** One request and its reply, or the reason why there is none. */
import { messageOf, PetstoreError, whyNotSent } from './errors.ts';
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
type FetchReply = {
  readonly status: number;
  readonly headers: Pick<Headers, 'get'>;
  arrayBuffer(): Promise<ArrayBuffer>;
};

export interface Request {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  url: URL;
  headers: Headers;
  body: string | undefined;
  expected: Expected;
}

/** What a reply that succeeds has: one thing of the service, a list of them, or no body. */
export type Expected = 'one' | 'list' | 'nothing';

/** Status and headers count even if the body broke off: a 429 is to be obeyed all the same. */
export interface Reply {
  /** 0: none has come. */
  status: number;
  headers: Headers;
  /** What was wanted; undefined after a 204 or 304. */
  json?: unknown;
  /** There is no reply, or not the one that was wanted. */
  error?: PetstoreError;
}

/** Never rejects. */
export async function exchange(fetch: Fetch, request: Request, timeoutMs: number, signal: AbortSignal): Promise<Reply> {
  const { method, url, body } = request;
  const reply: Reply = { status: 0, headers: new Headers() };
  const attempt = new AbortController();
  const stop = () => attempt.abort(signal.reason);
  signal.addEventListener('abort', stop);
  const tooLate = new PetstoreError('timeout', `no complete reply within ${timeoutMs} ms`);
  const timer = setTimeout(() => attempt.abort(tooLate), timeoutMs);
  try {
    const headers = Object.fromEntries(request.headers); // a copy, since the caller's fetch may change them
    const init = { method, headers, signal: attempt.signal, redirect: 'manual' as const };
    const response = await fetch(url.href, body === undefined ? init : { ...init, body });
    reply.status = response.status;
    reply.headers = new Headers(response.headers as Headers);
    reply.json = judge(request, reply, await response.arrayBuffer());
  } catch (thrown) {
    const cause = attempt.signal.aborted ? attempt.signal.reason : thrown;
    const isOwn = cause instanceof PetstoreError;
    reply.error = isOwn ? cause : new PetstoreError('network', reasonOf(url, reply.status, cause), { cause });
    const { status, headers } = reply;
    Object.assign(reply.error, { status, requestId: requestIdIn(headers), retryAfter: retryAfterIn(headers) });
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', stop);
  }
  return reply;
}

function reasonOf({ origin }: URL, status: number, error: unknown): string {
  const { why } = whyNotSent(error) ?? {};
  if (why !== undefined && status === 0) return `cannot reach ${origin}: ${why}; nothing was sent`;
  return `the connection to ${origin} broke before a complete reply came: ${messageOf(error)}`;
}

/** The value of the reply; throws if it is not what was wanted. */
function judge(
  { method, url, headers: sent, expected }: Request,
  { status, headers }: Reply,
  bytes: ArrayBuffer,
): unknown {
  if (status === 304 && sent.has('if-none-match')) return undefined;
  if (status === 204 && expected === 'nothing') return undefined;
  const type =
    bytes.byteLength === 0 ? 'with an empty body' : (headers.get('content-type')?.split(';')[0] ?? 'of no type');
  const leads = headers.has('location') && status < 400 ? `, leading to ${headers.get('location')}` : '';
  const description = `${status} ${type} from ${method} ${url.origin}${url.pathname}${leads}`;
  let json: unknown;
  try {
    json = parseJson(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (cause) {
    throw bad(`${description}, not the service's`, cause);
  }
  const isExpected = { one: hasId, list: isList, nothing: () => false }[expected](json);
  if (isExpected && status >= 200 && status < 300) return json;
  const { code, message } = Object(json) as { code?: unknown; message?: unknown };
  if (status >= 400 && typeof code === 'string' && typeof message === 'string') throw new PetstoreError(code, message);
  throw bad(`${description}, not the expected reply`);
}

/** Everything of the service has an id; replies of others seldom have one that could be meant so. */
const hasId = (value: unknown) => typeof value === 'object' && value !== null && 'id' in value && isId(value.id);
const isList = (value: unknown) => Array.isArray(value) && value.every(hasId);

const bad = (message: string, cause?: unknown) => new PetstoreError('bad_reply', message, { cause });
