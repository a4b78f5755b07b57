/**
 * Metrics in Prometheus' text format, on a listener of their own, since they are not for the public. Counting costs a
 * few additions a request.
 */
import { createServer, IncomingMessage, type Server, type ServerOptions, type ServerResponse } from 'node:http';
import { isIP, type Socket } from 'node:net';
import { hostname } from 'node:os';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { App } from '../app.ts';
import type { Engine, Log, Metric } from '../engine.ts';
import type { Answered } from '../exchange.ts';
import type { Gate } from '../gate.ts';
import type { Refused } from '../http/connections.ts';
import { nameIn } from '../http/hosts.ts';
import { add, type Histogram, linesOf, newHistogram } from './histogram.ts';
import type { Logger } from './logging.ts';
import type { ServeSettings } from './options.ts';
import { letIn, listen } from './sockets.ts';
import { COMMIT, RUNTIME, VERSION } from './version.ts';

const EVENT_LOOP_RESOLUTION_MS = 10;
const MAX_SCRAPE_MS = 5_000;
/** How late such a time-out may be noticed. */
const CHECKING_INTERVAL_MS = 1_000;
const MAX_SCRAPERS = 16;
const REQUESTS = 'petstore_requests_total';
const OPEN = 'petstore_open_connections';
const REFUSED = 'petstore_connections_refused_total';
const TOGETHER = 'petstore_requests_counted_together_total';
const DURATION = 'petstore_request_duration_seconds';
const BUILD = 'petstore_build_info';
const BUILT_AS = `version="${VERSION}",commit="${COMMIT}",runtime="${RUNTIME}"`;
const BATCH = 'petstore_log_batch_duration_seconds';

/** By endpoint: there are few, and a client cannot add one. */
type Routes = Map<string, { latency: Histogram; statuses: Map<number, number> }>;

/** The counts of one thread. */
export interface Figures {
  routes: Routes;
  /** Worst delay of its event loop since the scrape before, in seconds. */
  loopDelay: number;
  /** Connections that it refused or ended, by the bound that was reached. */
  refused: Partial<Refused>;
  /** Requests that it counted in an allowance of many addresses, by the allowance. */
  together: Partial<Gate['countedTogether']>;
  /** Its open connections. */
  open: number;
}

function routeOf(routes: Routes, name: string) {
  let route = routes.get(name);
  if (route === undefined) routes.set(name, (route = { latency: newHistogram(), statuses: new Map() }));
  return route;
}

function sumOf(all: Routes[]): Routes {
  const sum: Routes = new Map();
  for (const [name, { latency, statuses }] of all.flatMap((routes) => [...routes])) {
    const route = routeOf(sum, name);
    for (const [status, count] of statuses) route.statuses.set(status, (route.statuses.get(status) ?? 0) + count);
    route.latency.counts = route.latency.counts.map((count, at) => count + latency.counts[at]);
    route.latency.sumMs += latency.sumMs;
  }
  return sum;
}

/** A line for each name, with its count over all threads. */
function summed(metric: string, label: string, threads: Record<string, number>[]): string[] {
  const sumOf = (name: string) => threads.reduce((sum, counts) => sum + (counts[name] ?? 0), 0);
  return Object.keys(threads[0]).map((name) => `${metric}{${label}="${name}"} ${sumOf(name)}`);
}

export class Metrics {
  readonly #routes: Routes = new Map();
  readonly #batches = newHistogram();
  #app: Pick<App, 'connections' | 'gate'> | undefined;
  readonly #loop = monitorEventLoopDelay({ resolution: EVENT_LOOP_RESOLUTION_MS });

  constructor() {
    this.#loop.enable();
  }

  /** On the way of every reply: must cost well under a microsecond. */
  replied(name: string, status: number, ms: number): void {
    const { latency, statuses } = routeOf(this.#routes, name);
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
    add(latency, ms);
  }

  /** Connections and shared allowances are counted by the service itself: they are read from there. */
  watch(app: Pick<App, 'connections' | 'gate'>): void {
    this.#app = app;
  }

  /** Called by the engine for each batch that became durable. */
  readonly batch = (ms: number): void => add(this.#batches, ms);

  figures(): Figures {
    const loopDelay = this.#loop.max / 1e9;
    this.#loop.reset();
    const { refused = {}, open } = this.#app?.connections ?? {};
    const together = this.#app?.gate.countedTogether ?? {};
    return { routes: this.#routes, loopDelay, refused, together, open: open?.size ?? 0 };
  }

  /** `threads`: the counts of each thread, this one included. */
  text(threads: Figures[]): string {
    const requests: string[] = [];
    const latencies: string[] = [];
    for (const [name, { latency, statuses }] of sumOf(threads.map(({ routes }) => routes))) {
      const label = `route="${name}"`;
      for (const [status, count] of statuses) requests.push(`${REQUESTS}{${label},status="${status}"} ${count}`);
      latencies.push(...linesOf(latency, DURATION, label));
    }
    const refusals = summed(
      REFUSED,
      'bound',
      threads.map(({ refused }) => refused),
    );
    const together = summed(
      TOGETHER,
      'allowance',
      threads.map((one) => one.together),
    );
    const connections = threads.reduce((sum, { open }) => sum + open, 0);
    return [
      figure(OPEN, 'Connections that are open.', connections),
      family(REFUSED, 'Connections refused or ended, by the bound that was reached.', 'counter', refusals),
      family(TOGETHER, 'Requests in an allowance that many addresses share.', 'counter', together),
      family(REQUESTS, 'Requests answered, by operation and status.', 'counter', requests),
      family(DURATION, 'Time from the head of a request to its reply, by operation.', 'histogram', latencies),
      family(BATCH, 'Time to make a batch of changes durable.', 'histogram', linesOf(this.#batches, BATCH)),
    ].join('');
  }
}

const family = (name: string, help: string, type: string, lines: string[]): string =>
  [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...lines, ''].join('\n');

const figure = (name: string, help: string, value: number, type: Metric['type'] = 'gauge'): string =>
  family(name, help, type, [`${name} ${value}`]);

/** Gauges that are read at each scrape. */
function figuresOf(engine: Engine, loopDelay: number): string[] {
  const { userCPUTime, systemCPUTime } = process.resourceUsage();
  const { pets: animals, ...others } = engine.store.read.counts();
  const counts = Object.entries({ animals, ...others });
  return [
    family(BUILD, 'The program that runs: always 1.', 'gauge', [`${BUILD}{${BUILT_AS}} 1`]),
    ...counts.map(([name, value]) => figure(`petstore_${name}`, `How many ${name} there are.`, value)),
    figure('petstore_idempotency_records', 'Idempotency-Keys that are kept.', engine.store.read.idempotency.size),
    figure('petstore_store_bytes', 'Memory taken by the stored data.', engine.store.read.bytes.total),
    figure('petstore_store_max_bytes', 'Most memory that the stored data may take.', engine.store.maxBytes),
    figure('petstore_event_loop_delay_max_seconds', 'Worst delay since the last scrape.', loopDelay),
    figure('process_resident_memory_bytes', 'Memory held by the process.', process.memoryUsage.rss()),
    figure('process_cpu_seconds_total', 'Processor time used.', (userCPUTime + systemCPUTime) / 1e6, 'counter'),
    figure('process_start_time_seconds', 'Start of the process (Unix).', performance.timeOrigin / 1_000),
    ...Array.from(engine.metrics(), ({ name, help, value, type }) => figure(name, help, value, type)),
  ];
}

/** Against DNS rebinding: a web page can make a name of its own lead here, but not an address or our own name. */
function isOurs(host: string, listened: string): boolean {
  const name = nameIn(host);
  return isIP(name) !== 0 || ['localhost', listened.toLowerCase(), hostname().toLowerCase()].includes(name);
}

/** Connections on which a request is not answered yet. */
const asking = new WeakSet<Socket>();

/**
 * A request on a connection to the metrics. A scrape takes a millisecond, and 64 KiB hold 1,500 requests: so one
 * behind an unanswered one ends the connection. As an `upgrade` it makes node:http read no further bytes.
 */
class Scrape extends IncomingMessage {
  readonly #isTooEarly: boolean;

  constructor(socket: Socket) {
    super(socket);
    this.#isTooEarly = asking.has(socket);
    asking.add(socket);
  }

  get upgrade(): boolean {
    return this.#isTooEarly;
  }

  set upgrade(_: boolean) {}
}

interface Scraped {
  metrics: Metrics;
  engine: Engine;
  log: Log;
  /** The counts of the other threads. */
  others: () => Promise<Figures[]>;
}

export async function openMetrics(
  at: { host: string; port: number },
  { metrics, engine, log, others }: Scraped,
): Promise<Server> {
  const scrape = async () => {
    const threads = [metrics.figures(), ...(await others())];
    const loopDelay = Math.max(...threads.map((one) => one.loopDelay));
    return [metrics.text(threads), ...figuresOf(engine, loopDelay)].join('');
  };
  const answer = async (req: IncomingMessage, res: ServerResponse) => {
    res.once('close', () => asking.delete(req.socket));
    const ours = isOurs(req.headers.host ?? '', at.host);
    const found = ours && req.url === '/metrics' && (req.method === 'GET' || req.method === 'HEAD');
    const text = found ? await scrape() : ours ? 'Metrics are at /metrics\n' : `Ask by address, or as ${hostname()}\n`;
    const type = `text/plain; ${found ? 'version=0.0.4; ' : ''}charset=utf-8`;
    const headers = { 'Content-Type': type, 'Content-Length': Buffer.byteLength(text) };
    res.writeHead(found ? 200 : ours ? 404 : 421, headers).end(text);
  };
  const timeouts = { requestTimeout: MAX_SCRAPE_MS, headersTimeout: MAX_SCRAPE_MS };
  const settings = { ...timeouts, connectionsCheckingInterval: CHECKING_INTERVAL_MS, IncomingMessage: Scrape };
  const server = createServer(settings as ServerOptions, (req, res) => void answer(req, res));
  server.on('upgrade', (_req, socket) => socket.destroy());
  letIn(server, MAX_SCRAPERS, 'metrics', log);
  await listen(server, at, log);
  return server;
}

/** The listener for answered requests; undefined if neither metrics nor the access log are on. */
export function observer({ accessLog }: ServeSettings, metrics: Metrics | undefined, log: Logger) {
  if (metrics === undefined && !accessLog) return undefined;
  return ({ route, method, target, status, ms, requestId, keyId: key, address }: Answered) => {
    metrics?.replied(route, status, ms);
    const rounded = Math.round(ms * 1_000) / 1_000;
    if (accessLog) log.access({ requestId, method, target, status, ms: rounded, key, address: address() });
  };
}
