/**
 * What is counted, at the price of a few additions a request, and told in Prometheus' text format on a listener of its
 * own: it is not for the public.
 */
import { createServer, type Server } from 'node:http';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Engine, Log, Metric } from '../engine.ts';
import { listen } from './sockets.ts';

const BUCKETS_MS = [0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000];
const EVENT_LOOP_RESOLUTION_MS = 10;
const MAX_SCRAPE_MS = 5_000;
const MAX_SCRAPERS = 16;
const REQUESTS = 'petstore_requests_total';
const DURATION = 'petstore_request_duration_seconds';
const BATCH = 'petstore_log_batch_duration_seconds';

class Histogram {
  /** One more than there are bounds: the last takes what is slower than all of them. */
  readonly #counts = new Float64Array(BUCKETS_MS.length + 1);
  #sumMs = 0;

  add(ms: number): void {
    let bucket = 0;
    while (ms > BUCKETS_MS[bucket]) bucket++;
    this.#counts[bucket]++;
    this.#sumMs += ms;
  }

  /** `label`: such as `route="listPets"`. */
  lines(name: string, label = ''): string[] {
    let count = 0;
    const buckets = Array.from(this.#counts, (more, at) => {
      const le = at < BUCKETS_MS.length ? BUCKETS_MS[at] / 1_000 : '+Inf';
      count += more;
      return `${name}_bucket{${label && `${label},`}le="${le}"} ${count}`;
    });
    const own = label && `{${label}}`;
    return [...buckets, `${name}_sum${own} ${this.#sumMs / 1_000}`, `${name}_count${own} ${count}`];
  }
}

export class Metrics {
  /** By endpoint: those are few, and what a client chose is none. */
  readonly #routes = new Map<string, { latency: Histogram; statuses: Map<number, number> }>();
  readonly #batches = new Histogram();

  /** On the way of every reply: must cost well under a microsecond. */
  replied(name: string, status: number, ms: number): void {
    const route = this.#routes.get(name) ?? { latency: new Histogram(), statuses: new Map() };
    if (route.statuses.size === 0) this.#routes.set(name, route);
    route.statuses.set(status, (route.statuses.get(status) ?? 0) + 1);
    route.latency.add(ms);
  }

  /** What the engine tells of each batch that became durable. */
  readonly batch = (ms: number): void => this.#batches.add(ms);

  text(): string {
    const requests: string[] = [];
    const latencies: string[] = [];
    for (const [name, { latency, statuses }] of this.#routes) {
      const label = `route="${name}"`;
      for (const [status, count] of statuses) requests.push(`${REQUESTS}{${label},status="${status}"} ${count}`);
      latencies.push(...latency.lines(DURATION, label));
    }
    return [
      family(REQUESTS, 'Requests answered, by operation and status.', 'counter', requests),
      family(DURATION, 'Time from the head of a request to its reply, by operation.', 'histogram', latencies),
      family(BATCH, 'Time to make a batch of operations durable.', 'histogram', this.#batches.lines(BATCH)),
    ].join('');
  }
}

const family = (name: string, help: string, type: string, lines: string[]): string =>
  [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...lines, ''].join('\n');

const figure = (name: string, help: string, value: number, type: Metric['type'] = 'gauge'): string =>
  family(name, help, type, [`${name} ${value}`]);

/** What is looked up at a scrape. */
function figuresOf(engine: Engine, loopDelay: number): string[] {
  const { userCPUTime, systemCPUTime } = process.resourceUsage();
  const { pets: animals, ...others } = engine.store.read.counts();
  const counts = Object.entries({ animals, ...others });
  return [
    ...counts.map(([name, value]) => figure(`petstore_${name}`, `How many ${name} there are.`, value)),
    figure('petstore_event_loop_delay_max_seconds', 'Worst delay since the last scrape.', loopDelay),
    figure('process_resident_memory_bytes', 'Memory held by the process.', process.memoryUsage.rss()),
    figure('process_cpu_seconds_total', 'Processor time used.', (userCPUTime + systemCPUTime) / 1e6, 'counter'),
    figure('process_start_time_seconds', 'Start of the process (Unix).', performance.timeOrigin / 1_000),
    ...Array.from(engine.metrics(), ({ name, help, value, type }) => figure(name, help, value, type)),
  ];
}

export async function openMetrics(
  at: { host: string; port: number },
  { metrics, engine, log }: { metrics: Metrics; engine: Engine; log: Log },
): Promise<Server> {
  const loop = monitorEventLoopDelay({ resolution: EVENT_LOOP_RESOLUTION_MS });
  loop.enable();
  const scrape = () => {
    const text = [metrics.text(), ...figuresOf(engine, loop.max / 1e9)].join('');
    loop.reset();
    return text;
  };
  const server = createServer({ requestTimeout: MAX_SCRAPE_MS, headersTimeout: MAX_SCRAPE_MS }, (req, res) => {
    const found = req.url === '/metrics' && (req.method === 'GET' || req.method === 'HEAD');
    const text = found ? scrape() : 'Metrics are at /metrics\n';
    const type = `text/plain; ${found ? 'version=0.0.4; ' : ''}charset=utf-8`;
    res.writeHead(found ? 200 : 404, { 'Content-Type': type, 'Content-Length': Buffer.byteLength(text) }).end(text);
  });
  server.maxConnections = MAX_SCRAPERS;
  await listen(server, at, log);
  return server;
}
