/** A front on a real socket that does harm: before the service hears of a request, after it has answered, or in its place. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { TestContext } from 'node:test';

export interface Asked {
  method: string;
  /** Path and query. */
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
}

export interface Answer {
  status: number;
  headers?: Record<string, string>;
  body?: string;
  /** The connection ends within the body. */
  isHalf?: boolean;
}

/**
 * `pass`: to the service and back. `lost`: cut before the service hears of it. `cut`, `half`, `garbage`: the
 * service does it, then the connection is cut, cut within the reply, or carries bytes that are no HTTP. An Answer is
 * given in the service's place.
 */
export type Fault = 'pass' | 'lost' | 'cut' | 'half' | 'garbage' | Answer;

export class Front {
  /** Ends in /v1. */
  url = '';
  /** Decides about each request, in the order of arrival; may wait. */
  fault: (asked: Asked) => Fault | Promise<Fault>;
  /** The address of the live service. */
  behind: string;
  readonly asked: Asked[] = [];
  readonly sockets = new Set<Socket>();
  connections = 0;
  #server = createServer((req, res) => this.#answer(req, res).catch(() => req.socket.destroy()));

  constructor(fault: Front['fault'], behind = '') {
    this.fault = fault;
    this.behind = behind;
  }

  async listen(t: TestContext): Promise<this> {
    this.#server.on('connection', (socket) => {
      this.connections++;
      this.sockets.add(socket);
      socket.on('close', () => this.sockets.delete(socket));
    });
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`;
    t.after(() => {
      this.#server.close();
      this.#server.closeAllConnections();
    });
    return this;
  }

  /** Resolves once no connection is open; well before an idle one would be closed for its idleness. */
  async allClosed(): Promise<void> {
    const deadline = performance.now() + 2_000;
    while (this.sockets.size > 0) {
      assert.ok(performance.now() < deadline, `${this.sockets.size} connections are open`);
      await new Promise(setImmediate);
    }
  }

  async #answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const asked = { method: req.method ?? '', path: req.url ?? '', headers: req.headers, body: await textOf(req) };
    this.asked.push(asked);
    const fault: Fault = await this.fault(asked);
    if (typeof fault === 'object') return reply(res, fault);
    if (fault === 'lost') return void req.socket.destroy();
    const real = await this.#forward(asked);
    if (fault === 'pass') return reply(res, real);
    if (fault === 'cut') req.socket.destroy();
    if (fault === 'half') reply(res, { ...real, isHalf: true });
    if (fault === 'garbage') req.socket.end('\x16\x03\x01 this is no HTTP\r\n\r\n');
  }

  async #forward({ method, path, headers, body }: Asked): Promise<Answer> {
    const out = request(new URL(path, this.behind), { method, headers: { ...headers, connection: 'close' } });
    out.end(body);
    const [answer] = (await once(out, 'response')) as [IncomingMessage];
    const { connection: _, 'keep-alive': __, ...kept } = answer.headers;
    return { status: answer.statusCode ?? 0, headers: kept as Record<string, string>, body: await textOf(answer) };
  }
}

function reply(res: ServerResponse, { status, headers, body = '', isHalf }: Answer): void {
  if (!isHalf) return void res.writeHead(status, headers).end(body);
  const { 'transfer-encoding': _, ...kept } = headers ?? {};
  res.writeHead(status, { ...kept, 'content-length': Buffer.byteLength(body) });
  res.write(body.slice(0, 5), () => res.socket?.end());
}

async function textOf(message: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

/** An error as the service tells it. */
export function refusal(status: number, code: string, headers: Record<string, string> = {}): Answer {
  const said = { 'content-type': 'application/json; charset=utf-8', 'x-request-id': 'r-1', ...headers };
  return { status, headers: said, body: JSON.stringify({ code, message: `because of ${code}`, status }) };
}

export function json(value: unknown, headers: Record<string, string> = {}, status = 200): Answer {
  const body = typeof value === 'string' ? value : JSON.stringify(value);
  return { status, headers: { 'content-type': 'application/json; charset=utf-8', ...headers }, body };
}

export const REX = { id: 1, name: 'Rex', categoryId: 1, status: 'available' };

/** Gives these one after the other, the last again and again. */
export function inTurn(...faults: Fault[]): () => Fault {
  let next = 0;
  return () => faults[Math.min(next++, faults.length - 1)];
}
