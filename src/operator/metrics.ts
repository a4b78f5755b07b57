/**
 * What is counted, at the price of a few additions a request, and told in Prometheus' text format on a listener of its
 * own: it is not for the public.
 */
import { createServer, type Server } from 'node:http';
import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks';
import type { Engine, Log } from '../engine.ts';
import { listen } from './sockets.ts';

const BUCKETS_MS = [0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000];
const EVENT_LOOP_RESOLUTION_MS = 10;
const SCRAPE_MAX_MS = 5_000;
const SCRAPERS_MAX = 16;

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

  /** `route`: where it is of one operation. */
  lines(name: string, route?: string): string[] {
    let count = 0;
    const label = route === undefined ? '' : `route="${route}"`;
    const buckets = Array.from(this.#counts, (more, at) => {
      const le = at < BUCKETS_MS.length ? BUCKETS_MS[at] / 1_000 : '+Inf';
      return `${name}_bucket{${label && `${label},`}le="${le}"} ${(count += more)}`;
    });
    const own = label && `{${label}}`;
    return [...buckets, `${name}_sum${own} ${this.#sumMs / 1_000}`, `${name}_count${own} ${count}`];
  }
}

/** Of one operation. */
class Route {
  readonly latency = new Histogram();
  /** How many replies, by status. */
  readonly statuses = new Map<number, number>();
}

export class Metrics {
  readonly #routes = new Map<string, Route>();
  readonly #batches = new Histogram();

  /** On the way of every reply: must cost well under a microsecond. */
  replied(name: string, status: number, ms: number): void {
    const { latency, statuses } = this.#routes.get(name) ?? this.#add(name);
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
    latency.add(ms);
  }

  /** Operations are few, and what a client chose is none. */
  #add(name: string): Route {
    const route = new Route();
    this.#routes.set(name, route);
    return route;
  }

  /** What the engine tells of each batch that became durable. */
  batch(_records: number, _bytes: number, ms: number): void {
    this.#batches.add(ms);
  }

  text(): string {
    const [duration, batch] = ['petstore_request_duration_seconds', 'petstore_log_batch_duration_seconds'];
    const routes = [...this.#routes];
    const latencies = routes.flatMap(([name, { latency }]) => latency.lines(duration, name));
    const requests = routes.flatMap(([name, { statuses }]) =>
      Array.from(statuses, ([status, value]) => {
        return `petstore_requests_total{route="${name}",status="${status}"} ${value}`;
      }),
    );
    return [
      family('petstore_requests_total', 'Requests answered, by operation and status.', 'counter', requests),
      family(duration, 'Time from the head of a request to its reply, by operation.', 'histogram', latencies),
      family(batch, 'Time to make a batch of operations durable.', 'histogram', this.#batches.lines(batch)),
    ].join('');
  }
}

const family = (name: string, help: string, type: string, lines: string[]): string =>
  [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...lines, ''].join('\n');

/** The event loop's monitor begins anew with every scrape. */
function figuresOf(engine: Engine, loop: IntervalHistogram): string {
  const single = (name: string, help: string, type: string, value: number) =>
    family(name, help, type, [`${name} ${value}`]);
  const { userCPUTime, systemCPUTime } = process.resourceUsage();
  const delay = loop.max / 1e9;
  loop.reset();
  const { pets: animals, ...others } = engine.store.read.counts();
  const counts = Object.entries({ animals, ...others });
  return [
    ...counts.map(([name, value]) => single(`petstore_${name}`, `How many ${name} there are.`, 'gauge', value)),
    ...Array.from(engine.metrics(), ({ name, help, type, value }) => single(name, help, type, value)),
    single('petstore_event_loop_delay_max_seconds', 'Worst delay since the last scrape.', 'gauge', delay),
    single('process_resident_memory_bytes', 'Memory held by the process.', 'gauge', process.memoryUsage.rss()),
    single('process_cpu_seconds_total', 'Processor time used.', 'counter', (userCPUTime + systemCPUTime) / 1e6),
    single('process_start_time_seconds', 'Start of the process (Unix).', 'gauge', performance.timeOrigin / 1_000),
  ].join('');
}

export async function openMetrics(
  at: { host: string; port: number },
  { metrics, engine, log }: { metrics: Metrics; engine: Engine; log: Log },
): Promise<Server> {
  const loop = monitorEventLoopDelay({ resolution: EVENT_LOOP_RESOLUTION_MS });
  loop.enable();
  const server = createServer({ requestTimeout: SCRAPE_MAX_MS, headersTimeout: SCRAPE_MAX_MS }, (req, res) => {
    const found = req.url === '/metrics' && (req.method === 'GET' || req.method === 'HEAD');
    const text = found ? metrics.text() + figuresOf(engine, loop) : 'Metrics are at /metrics\n';
    const type = `text/plain; ${found ? 'version=0.0.4; ' : ''}charset=utf-8`;
    res.writeHead(found ? 200 : 404, { 'Content-Type': type, 'Content-Length': Buffer.byteLength(text) }).end(text);
  });
  server.maxConnections = SCRAPERS_MAX;
  await listen(server, at, log);
  return server;
}
