/** A request of the load, and sending it once to look at the reply before anything is timed. */
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';

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

export function get(path: string, key: string, status = 200): Request {
  return { method: 'GET', path, headers: { Authorization: `Bearer ${key}` }, status };
}

export function post(path: string, key: string, value: unknown): Request {
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' };
  return { method: 'POST', path, headers, body: JSON.stringify(value), status: 201 };
}

/** Rejects unless the reply has the request's status. `socketPath`: in place of the origin's port. */
export async function send(origin: string, wanted: Request, socketPath?: string): Promise<Reply> {
  const { method, path, headers, body, status } = wanted;
  const sent = request(origin + path, { method, headers, socketPath }).end(body);
  const [reply]: IncomingMessage[] = await once(sent, 'response');
  const replied = await text(reply);
  if (reply.statusCode === status) return { status, rawHeaders: reply.rawHeaders, body: replied };
  throw new Error(`${method} ${path} on ${origin}: ${reply.statusCode} ${replied}, expected ${status}`);
}

/** The replies to many requests, in their order. */
export async function sendAll(origin: string, requests: Request[]): Promise<Reply[]> {
  const replies: Reply[] = [];
  for (const one of requests) replies.push(await send(origin, one));
  return replies;
}
