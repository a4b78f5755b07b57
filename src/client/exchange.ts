/** One request and what its reply says, or why there is none. */
import type { IncomingHttpHeaders } from 'node:http';
import type { Agent } from 'undici';
import { readJson } from '../json/reader.ts';
import { JsonError } from '../json/text.ts';
import { type ClientCode, PetstoreError, type PetstoreErrorCode } from './errors.ts';
import { plain } from './ids.ts';

export interface Asked {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH';
  url: URL;
  body?: string;
  idempotencyKey?: string;
}

/** With a `fault` it is not what was asked for. */
export type Reply = { headers: IncomingHttpHeaders; json?: unknown; fault?: PetstoreError };

const CODES = new Map<string | undefined, ClientCode>([
  ['UND_ERR_INVALID_ARG', 'invalid_argument'],
  ['UND_ERR_HEADERS_TIMEOUT', 'timeout'],
  ['UND_ERR_BODY_TIMEOUT', 'timeout'],
  ['UND_ERR_RES_EXCEEDED_MAX_SIZE', 'bad_reply'],
]);

/** Why there was no connection, in words. */
const UNREACHABLE = new Map<string | undefined, string>([
  ['ECONNREFUSED', 'connection refused'],
  ['ENOTFOUND', 'there is no such host'],
  ['EAI_AGAIN', 'the host name cannot be looked up just now'],
  ['EHOSTUNREACH', 'there is no route to the host'],
  ['ENETUNREACH', 'there is no route to the network'],
  ['UND_ERR_CONNECT_TIMEOUT', 'nobody answered in time'],
]);

/** Never rejects. What the head said is told also where the body broke off: a 429 is to be obeyed all the same. */
export async function exchange(agent: Agent, key: string, asked: Asked, signal: AbortSignal): Promise<Reply> {
  const { method, url, body, idempotencyKey } = asked;
  const { origin, pathname, search } = url;
  const types = { accept: 'application/json', 'content-type': body && 'application/json' };
  const sent = { ...types, authorization: `Bearer ${key}`, 'idempotency-key': idempotencyKey };
  let status = 0;
  let headers: IncomingHttpHeaders = {};
  const failed = (code: PetstoreErrorCode, message: string, cause?: unknown): Reply => {
    const retryAfter = /^\d+$/.test(headers['retry-after'] ?? '') ? Number(headers['retry-after']) : undefined;
    const facts = { status, requestId: headers['x-request-id']?.toString(), retryAfter, cause };
    return { headers, fault: new PetstoreError(code, message, facts) };
  };
  try {
    const reply = await agent.request({ origin, path: pathname + search, method, headers: sent, body, signal });
    status = reply.statusCode;
    headers = reply.headers;
    const json = plain(readJson(await reply.body.bytes()));
    // What is asked with a query is a list.
    const isRight = search === '' ? isThing(json) : Array.isArray(json) && json.every(isThing);
    if (isRight && status >= 200 && status < 300) return { headers, json };
    const { code, message } = (json ?? {}) as { code?: unknown; message?: unknown };
    if (status >= 400 && typeof code === 'string' && typeof message === 'string') return failed(code, message);
    return failed('bad_reply', `the reply (status ${status}) is not one to ${method} ${pathname}`);
  } catch (error) {
    const { code, message } = error as Error & { code?: string };
    const kind = error instanceof JsonError ? 'bad_reply' : CODES.get(code);
    const unreachable = UNREACHABLE.get(code);
    const what = unreachable
      ? `cannot reach ${origin}: ${unreachable}`
      : `no complete reply from ${origin}: ${message}`;
    return failed(kind ?? 'network', what, error);
  }
}

const isThing = (value: unknown) => typeof value === 'object' && value !== null && 'id' in value;

/** One window of the key's limits, and how long until it is full again. */
type Window = { limit: number; remaining: number; resetsInSeconds: number };

/** Both windows as a reply told them, and when it came by this machine's clock. */
export type Limits = { minute: Window; day: Window; at: Date };

/** Out of `RateLimit-Policy: "minute";q=60;w=60, "day";…` and `RateLimit: "minute";r=59;t=60, "day";…`. */
export function limitsIn(headers: IncomingHttpHeaders): Limits | undefined {
  const said = `${headers['ratelimit-policy']}, ${headers.ratelimit}`;
  const [minute, day] = ['minute', 'day'].map((name) => {
    const found = new RegExp(`"${name}";q=(\\d+).*"${name}";r=(\\d+);t=(\\d+)`).exec(said)?.map(Number);
    return found && { limit: found[1], remaining: found[2], resetsInSeconds: found[3] };
  });
  return minute && day && { minute, day, at: new Date() };
}
