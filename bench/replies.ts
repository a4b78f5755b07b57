/** Asks a server once and looks whether the reply is right, before anything is timed. */
import { connect } from 'node:net';
import type { Call } from './load.ts';

const REPLY_MAX_MS = 10_000;

export interface Reply {
  status: number;
  headers: Map<string, string>;
  text: string;
  /** Every byte as it came, one character a byte. */
  raw: string;
}

/** Over a socket of its own, so that the reply is kept as it came. */
export function ask(origin: string, { method, path, headers, body = '' }: Omit<Call, 'status'>): Promise<Reply> {
  const { hostname, port, host } = new URL(origin);
  const length = body === '' ? {} : { 'Content-Length': String(Buffer.byteLength(body)) };
  const fields = Object.entries({ Host: host, Connection: 'close', ...headers, ...length });
  const lines = [`${method} ${path} HTTP/1.1`, ...fields.map(([name, value]) => `${name}: ${value}`)];
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname);
    let raw = '';
    socket.setTimeout(REPLY_MAX_MS, () => socket.destroy(new Error(`no reply to ${method} ${path}`)));
    socket.setEncoding('latin1');
    socket.on('data', (text) => {
      raw += text;
    });
    socket.on('error', reject);
    socket.on('end', () => {
      const reply = parse(raw);
      if (!reply.headers.has('transfer-encoding')) return resolve(reply);
      reject(new Error(`${method} ${path}: a reply in chunks, which is not read here`));
    });
    socket.write(`${lines.join('\r\n')}\r\n\r\n${body}`);
  });
}

function parse(raw: string): Reply {
  const cut = raw.indexOf('\r\n\r\n');
  const [first, ...lines] = raw.slice(0, cut).split('\r\n');
  const headers = new Map(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
  );
  const text = Buffer.from(raw.slice(cut + 4), 'latin1').toString();
  return { status: Number(first.split(' ')[1]), headers, text, raw };
}

/** Throws unless the reply has the call's status, is JSON, and holds what it should. */
export async function mustAnswer(origin: string, call: Call, look?: (value: unknown) => void): Promise<Reply> {
  const reply = await ask(origin, call);
  const where = `${call.method} ${call.path} on ${origin}`;
  if (reply.status !== call.status) throw new Error(`${where}: ${reply.status} ${reply.text}, not ${call.status}`);
  const type = reply.headers.get('content-type') ?? '';
  if (!type.startsWith('application/json')) throw new Error(`${where}: content type ${type}`);
  const value = JSON.parse(reply.text);
  try {
    look?.(value);
  } catch (error) {
    throw new Error(`${where}: ${(error as Error).message}`);
  }
  return reply;
}

/** What every reply of the service itself must carry besides. */
export function mustHaveLimitHeaders(reply: Reply): void {
  for (const name of ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset', 'x-request-id']) {
    if (!/\S/.test(reply.headers.get(name) ?? '')) throw new Error(`a reply of the service came without ${name}`);
  }
}
