/** A request of the load, and sending it once to look at the reply before anything is timed. */
import { request } from 'undici';

export interface Request {
  method: 'GET' | 'POST';
  path: string;
  headers: Record<string, string>;
  body?: string;
  /** The status of the right reply. */
  status: number;
}

export interface Reply {
  status: number;
  /** Name, value, name, value, as they came. */
  rawHeaders: string[];
  body: string;
}

const AT_ONCE = 16;

export function get(path: string, key: string, status = 200): Request {
  return { method: 'GET', path, headers: { Authorization: `Bearer ${key}` }, status };
}

export function post(path: string, key: string, value: unknown): Request {
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' };
  return { method: 'POST', path, headers, body: JSON.stringify(value), status: 201 };
}

/** Rejects unless the reply has the request's status. */
export async function send(origin: string, { method, path, headers, body, status }: Request): Promise<Reply> {
  const reply = await request(origin + path, { method, headers, body, responseHeaders: 'raw' });
  const text = await reply.body.text();
  // What `raw` gives is not in the types.
  if (reply.statusCode === status) return { status, rawHeaders: reply.headers as unknown as string[], body: text };
  throw new Error(`${method} ${path} on ${origin}: ${reply.statusCode} ${text}, expected ${status}`);
}

/** The replies to many requests, in their order. */
export async function sendAll(origin: string, requests: Request[]): Promise<Reply[]> {
  const replies: Reply[] = [];
  for (let at = 0; at < requests.length; at += AT_ONCE) {
    replies.push(...(await Promise.all(requests.slice(at, at + AT_ONCE).map((one) => send(origin, one)))));
  }
  return replies;
}
