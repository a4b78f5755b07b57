/** A front on a real socket that does harm: before the service hears of a request, after it has answered, or in its place. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';

/** `path`: with its query. */
export type Asked = { method: string; path: string; headers: IncomingHttpHeaders; body: string };
/** `isHalf`: the connection ends within the body. */
export type Answer = { status: number; headers?: Record<string, string>; body?: string; isHalf?: boolean };

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
  /** Connections that are open, and how many there ever were. */
  open = 0;
  connections = 0;

  constructor(fault: Front['fault'], behind: string) {
    this.fault = fault;
    this.behind = behind;
  }

  async listen(t: TestContext): Promise<this> {
    const server = createServer((req, res) => this.#answer(req, res).catch(() => req.socket.destroy()));
    server.on('connection', (socket) => {
      this.connections++;
      this.open++;
      socket.on('close', () => this.open--);
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
    t.after(() => {
      server.close();
      server.closeAllConnections();
    });
    return this;
  }

  /** Resolves once no connection is open; well before an idle one would be closed for its idleness. */
  async allClosed(): Promise<void> {
    const deadline = performance.now() + 2_000;
    while (this.open > 0) {
      assert.ok(performance.now() < deadline, `${this.open} connections are open`);
      await new Promise(setImmediate);
    }
  }

  async #answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const asked = { method: req.method ?? '', path: req.url ?? '', headers: req.headers, body: await text(req) };
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
    const [answer] = (await once(out.end(body), 'response')) as [IncomingMessage];
    const { connection: _, 'keep-alive': __, ...kept } = answer.headers;
    return { status: answer.statusCode ?? 0, headers: kept as Record<string, string>, body: await text(answer) };
  }
}

function reply(res: ServerResponse, { status, headers, body = '', isHalf }: Answer): void {
  if (!isHalf) return void res.writeHead(status, headers).end(body);
  const { 'transfer-encoding': _, ...kept } = headers ?? {};
  res.writeHead(status, { ...kept, 'content-length': Buffer.byteLength(body) });
  res.write(body.slice(0, 5), () => res.socket?.end());
}

export function json(value: unknown, headers: Record<string, string> = {}, status = 200): Answer {
  const body = typeof value === 'string' ? value : JSON.stringify(value);
  return { status, headers: { 'content-type': 'application/json; charset=utf-8', ...headers }, body };
}

/** An error as the service tells it. */
export function refusal(status: number, code: string, headers: Record<string, string> = {}): Answer {
  return json({ code, message: `because of ${code}`, status }, { 'x-request-id': 'r-1', ...headers }, status);
}

/** Gives these one after the other, the last again and again. */
export function inTurn(...faults: Fault[]): () => Fault {
  return () => (faults.length > 1 ? (faults.shift() as Fault) : faults[0]);
}

export const REX = { id: 1, name: 'Rex', categoryId: 1, status: 'available' };
