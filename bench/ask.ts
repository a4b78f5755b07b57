/** Asks a server once and looks whether the reply is right, before anything is timed. */
import { request } from 'node:http';

export interface Call {
  method: 'GET' | 'POST';
  path: string;
  headers: Record<string, string>;
  body?: string;
  /** The status that is right; any other is counted as wrong. */
  status: number;
}

export interface Reply {
  status: number;
  /** As they came: name, value, name, value. */
  rawHeaders: string[];
  headers: Record<string, unknown>;
  body: string;
}

const REPLY_MAX_MS = 10_000;

export function get(path: string, key: string, status = 200): Call {
  return { method: 'GET', path, headers: { Authorization: `Bearer ${key}` }, status };
}

export function post(path: string, key: string, value: unknown): Call {
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' };
  return { method: 'POST', path, headers, body: JSON.stringify(value), status: 201 };
}

export function ask(origin: string, { method, path, headers, body }: Call): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const timeout = AbortSignal.timeout(REPLY_MAX_MS);
    const asking = request(origin + path, { method, headers, agent: false, signal: timeout }, async (response) => {
      const chunks = await response.toArray();
      const { statusCode: status = 0, rawHeaders, headers } = response;
      resolve({ status, rawHeaders, headers, body: Buffer.concat(chunks).toString() });
    });
    asking.on('error', reject).end(body);
  });
}

/** Throws unless the reply has the call's status, is JSON, and holds what it should. */
export async function mustAnswer(origin: string, call: Call, look?: (value: unknown) => void): Promise<Reply> {
  const reply = await ask(origin, call);
  const where = `${call.method} ${call.path} on ${origin}`;
  if (reply.status !== call.status) throw new Error(`${where}: ${reply.status} ${reply.body}, not ${call.status}`);
  const type = String(reply.headers['content-type']);
  if (!type.startsWith('application/json')) throw new Error(`${where}: content type ${type}`);
  const value = JSON.parse(reply.body);
  try {
    look?.(value);
  } catch (error) {
    throw new Error(`${where}: ${(error as Error).message}`);
  }
  return reply;
}
