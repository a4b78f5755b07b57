/** A request of the load, and sending it once to look at the reply before anything is timed. */
import { Agent, request } from 'node:http';

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
  headers: Record<string, unknown>;
  body: string;
}

const REPLY_MAX_MS = 30_000;
const AT_ONCE = 16;
const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });

export function get(path: string, key: string, status = 200): Request {
  return { method: 'GET', path, headers: { Authorization: `Bearer ${key}` }, status };
}

export function post(path: string, key: string, value: unknown): Request {
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' };
  return { method: 'POST', path, headers, body: JSON.stringify(value), status: 201 };
}

/** Rejects unless the reply has the request's status. */
export function send(origin: string, { method, path, headers, body, status }: Request): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const options = { method, headers, agent, signal: AbortSignal.timeout(REPLY_MAX_MS) };
    const sending = request(origin + path, options, async (response) => {
      const text = Buffer.concat(await response.toArray()).toString();
      const { statusCode = 0, rawHeaders, headers } = response;
      if (statusCode === status) return resolve({ status, rawHeaders, headers, body: text });
      reject(new Error(`${method} ${path} on ${origin}: ${statusCode} ${text}, expected ${status}`));
    });
    sending.on('error', reject).end(body);
  });
}

/** The replies to many requests, in their order. */
export async function sendAll(origin: string, requests: Request[]): Promise<Reply[]> {
  const replies: Reply[] = [];
  for (let at = 0; at < requests.length; at += AT_ONCE) {
    replies.push(...(await Promise.all(requests.slice(at, at + AT_ONCE).map((one) => send(origin, one)))));
  }
  return replies;
}
