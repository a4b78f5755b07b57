import type { Dispatcher } from 'undici';
import { JsonError, type JsonValue, readJson } from '../json/reader.ts';
import { Failure } from './errors.ts';

/** A page of 100 animals with the longest names, every character escaped, is well below. */
export const MAX_REPLY_BYTES = 1_048_576;

export interface Asked {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH';
  url: URL;
  headers: Record<string, string>;
  body?: string;
}

export interface Reply {
  status: number;
  headers: Map<string, string>;
  /** Undefined where the body is not JSON: `flaw` says why. */
  json: JsonValue | undefined;
  flaw?: unknown;
}

/**
 * One request and its whole reply. The body is read to its end, or the connection is destroyed: no socket is left
 * half read. undici's own limits of time are off, because they watch single steps (a reply that drips keeps them
 * content): the signal is the one limit.
 */
export async function exchange(dispatcher: Dispatcher, asked: Asked, signal: AbortSignal): Promise<Reply> {
  const { method, url, headers, body } = asked;
  signal.throwIfAborted();
  const options = { origin: url.origin, path: url.pathname + url.search, method, headers, body, signal };
  const request = dispatcher.request({ ...options, headersTimeout: 0, bodyTimeout: 0 });
  // undici hears of the signal only once it has a connection; who aborts is not to wait for that.
  const response = await orAborted(request, signal);
  const reply: Reply = { status: response.statusCode, headers: new Map(), json: undefined };
  for (const [name, value] of Object.entries(response.headers)) {
    if (value !== undefined) reply.headers.set(name, Array.isArray(value) ? value.join(', ') : value);
  }
  try {
    reply.json = readJson(await readAll(response.body, reply.status));
  } catch (flaw) {
    // A 429 is obeyed although its body broke off: status and headers have said enough.
    if (!(flaw instanceof JsonError) && reply.status !== 429) throw flaw;
    reply.flaw = flaw;
  }
  return reply;
}

async function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let stop = () => {};
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason);
    signal.addEventListener('abort', stop);
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', stop);
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
