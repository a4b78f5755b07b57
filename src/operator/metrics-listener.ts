/** The listener that serves the metrics: one of its own, since they are not for the public. */
import { createServer, IncomingMessage, type Server, type ServerOptions, type ServerResponse } from 'node:http';
import { isIP, type Socket } from 'node:net';
import { hostname } from 'node:os';
import type { Engine, Log } from '../engine.ts';
import { nameIn } from '../http/hosts.ts';
import type { Figures } from './metrics.ts';
import { metricsText } from './metrics-text.ts';
import { letIn, listen } from './sockets.ts';

const MAX_SCRAPE_MS = 5_000;
/** How late such a time-out may be noticed. */
const CHECKING_INTERVAL_MS = 1_000;
const MAX_SCRAPERS = 16;

interface Scraped {
  engine: Engine;
  log: Log;
  figures: () => Figures;
}

export async function openMetrics(
  at: { host: string; port: number },
  { engine, log, figures }: Scraped,
): Promise<Server> {
  const answer = (req: IncomingMessage, res: ServerResponse) => {
    res.once('close', () => unanswered.delete(req.socket));
    const refusal = refusalOf(req, at.host);
    const text = refusal?.text ?? metricsText(figures(), engine);
    const type = `text/plain; ${refusal ? '' : 'version=0.0.4; '}charset=utf-8`;
    const headers = { 'Content-Type': type, 'Content-Length': Buffer.byteLength(text) };
    res.writeHead(refusal?.status ?? 200, headers).end(text);
  };
  const timeouts = { requestTimeout: MAX_SCRAPE_MS, headersTimeout: MAX_SCRAPE_MS };
  const settings = { ...timeouts, connectionsCheckingInterval: CHECKING_INTERVAL_MS, IncomingMessage: Scrape };
  const server = createServer(settings as ServerOptions, answer);
  server.on('upgrade', (_req, socket) => socket.destroy());
  letIn(server, MAX_SCRAPERS, 'metrics', log);
  await listen(server, at, log);
  return server;
}

function refusalOf({ headers, method, url }: IncomingMessage, listened: string) {
  if (!isOurs(headers.host ?? '', listened)) return { status: 421, text: `Ask by address, or as ${hostname()}\n` };
  const isScrape = url === '/metrics' && (method === 'GET' || method === 'HEAD');
  return isScrape ? undefined : { status: 404, text: 'Metrics are at /metrics\n' };
}

/** Against DNS rebinding: a web page can make a name of its own lead here, but not an address or our own name. */
function isOurs(host: string, listened: string): boolean {
  const name = nameIn(host);
  return isIP(name) !== 0 || ['localhost', listened.toLowerCase(), hostname().toLowerCase()].includes(name);
}

/** Connections on which a request is not answered yet. */
const unanswered = new WeakSet<Socket>();

/**
 * A request on a connection to the metrics. A scrape takes a millisecond, and 64 KiB hold 1,500 requests: so one
 * behind an unanswered one ends the connection. As an `upgrade` it makes node:http read no further bytes.
 */
class Scrape extends IncomingMessage {
  readonly #isTooEarly: boolean;

  constructor(socket: Socket) {
    super(socket);
    this.#isTooEarly = unanswered.has(socket);
    unanswered.add(socket);
  }

  get upgrade(): boolean {
    return this.#isTooEarly;
  }

  set upgrade(_: boolean) {}
}
