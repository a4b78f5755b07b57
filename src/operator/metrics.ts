/**
 * What is counted, at the price of a few additions a request, and told in Prometheus' text format on a listener of its
 * own: it is not for the public.
 */
import { createServer, type Server } from 'node:http';
import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks';
import type { Store } from '../store/model.ts';
import { listen } from './listen.ts';
import type { Log } from './logging.ts';
import type { UsageRecorder } from './usage.ts';

const SYNC_BUCKETS_MS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000];
const LATENCY_BUCKETS_MS = [0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000];
/** Operations are few; this only bounds the damage of a caller that takes texts of clients for their names. */
const ROUTES_MAX = 64;
const FIRST_STATUS = 100;
const STATUSES = 500;
const EVENT_LOOP_RESOLUTION_MS = 10;
const SCRAPE_MAX_MS = 5_000;
const SCRAPERS_MAX = 16;

/** One value of a family of figures, and what stands behind the family's name: `{route="listPets",status="200"}`. */
type Sample = [suffix: string, value: number];

class Histogram {
  readonly #boundsMs: number[];
  /** One more than there are bounds: the last takes what is slower than all of them. */
  readonly #counts: Float64Array;
  #sumMs = 0;

  constructor(boundsMs: number[]) {
    this.#boundsMs = boundsMs;
    this.#counts = new Float64Array(boundsMs.length + 1);
  }

  add(ms: number): void {
    let bucket = 0;
    while (ms > this.#boundsMs[bucket]) bucket++;
    this.#counts[bucket]++;
    this.#sumMs += ms;
  }

  samples(route?: string): Sample[] {
    const [labels, first] = route === undefined ? ['', ''] : [`{route="${route}"}`, `route="${route}",`];
    let count = 0;
    const buckets = Array.from(this.#counts, (more, at): Sample => {
      const le = at < this.#boundsMs.length ? this.#boundsMs[at] / 1_000 : '+Inf';
      return [`_bucket{${first}le="${le}"}`, (count += more)];
    });
    return [...buckets, [`_sum${labels}`, this.#sumMs / 1_000], [`_count${labels}`, count]];
  }
}

class RouteFigures {
  /** By status, found without a look-up. */
  readonly statuses = new Float64Array(STATUSES);
  readonly latency = new Histogram(LATENCY_BUCKETS_MS);
}

export class Metrics {
  readonly #routes = new Map<string, RouteFigures>();
  records = 0;
  bytes = 0;
  readonly sync = new Histogram(SYNC_BUCKETS_MS);

  /** On the way of every reply: must cost well under a microsecond. */
  replied(route: string, status: number, ms: number): void {
    const figures = this.#routes.get(route) ?? this.#add(route);
    figures.statuses[status - FIRST_STATUS]++;
    figures.latency.add(ms);
  }

  #add(route: string): RouteFigures {
    const name = this.#routes.size < ROUTES_MAX ? route : 'other';
    const figures = this.#routes.get(name) ?? new RouteFigures();
    this.#routes.set(name, figures);
    return figures;
  }

  /** What the store tells of each batch that became durable. */
  batch(records: number, bytes: number, ms: number): void {
    this.records += records;
    this.bytes += bytes;
    this.sync.add(ms);
  }

  requests(): Sample[] {
    const samples: Sample[] = [];
    for (const [route, { statuses }] of this.#routes) {
      statuses.forEach((value, at) => {
        if (value > 0) samples.push([`{route="${route}",status="${at + FIRST_STATUS}"}`, value]);
      });
    }
    return samples;
  }

  refusals(): number {
    return [...this.#routes.values()].reduce((sum, { statuses }) => sum + statuses[429 - FIRST_STATUS], 0);
  }

  latency(): Sample[] {
    return [...this.#routes].flatMap(([route, { latency }]) => latency.samples(route));
  }
}

const family = (type: string) => (name: string, help: string, figures: number | Sample[]) => {
  const samples: Sample[] = typeof figures === 'number' ? [['', figures]] : figures;
  const lines = samples.map(([suffix, value]) => `${name}${suffix} ${value}\n`);
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`;
};
const counter = family('counter');
const gauge = family('gauge');
const histogram = family('histogram');

interface Sources {
  metrics: Metrics;
  store: Store;
  usage: UsageRecorder;
}

/** The event loop's monitor begins anew with every scrape. */
function render({ metrics, store, usage }: Sources, loop: IntervalHistogram): string {
  const { pets, orders, categories, keys } = store.read.counts();
  const { rss, heapUsed, external } = process.memoryUsage();
  const { userCPUTime, systemCPUTime } = process.resourceUsage();
  const [mean, worst] = [loop.mean, loop.max].map((ns) => (Number.isFinite(ns) ? ns / 1e9 : 0));
  loop.reset();
  const duration = 'Time from the head of a request to its reply, by operation.';
  return [
    counter('petstore_requests_total', 'Requests answered, by operation and status.', metrics.requests()),
    histogram('petstore_request_duration_seconds', duration, metrics.latency()),
    counter('petstore_refusals_total', 'Requests refused by a limit or a ban.', metrics.refusals()),
    counter('petstore_bans_total', 'Bans of keys that have begun.', usage.bans),
    counter('petstore_log_records_total', 'Operations written to the log.', metrics.records),
    counter('petstore_log_bytes_total', 'Bytes written to the log.', metrics.bytes),
    histogram(
      'petstore_log_batch_duration_seconds',
      'Time to write a batch of operations and to make it durable.',
      metrics.sync.samples(),
    ),
    gauge('petstore_animals', 'Animals in the store.', pets),
    gauge('petstore_orders', 'Orders in the store.', orders),
    gauge('petstore_categories', 'Categories in the store.', categories),
    gauge('petstore_keys', 'Keys ever made.', keys),
    gauge('petstore_event_loop_delay_mean_seconds', 'Mean delay of the event loop since the last scrape.', mean),
    gauge('petstore_event_loop_delay_max_seconds', 'Worst delay of the event loop since the last scrape.', worst),
    gauge('process_resident_memory_bytes', 'Memory held by the process.', rss),
    gauge('petstore_heap_used_bytes', 'Memory used by objects.', heapUsed),
    gauge('petstore_external_memory_bytes', 'Memory used by buffers.', external),
    counter('process_cpu_seconds_total', 'Processor time used.', (userCPUTime + systemCPUTime) / 1e6),
    gauge('process_start_time_seconds', 'When the process began, in Unix time.', performance.timeOrigin / 1_000),
  ].join('');
}

/** Listens; the result closes it again. */
export async function openMetrics(at: { host: string; port: number }, sources: Sources, log: Log): Promise<Server> {
  const loop = monitorEventLoopDelay({ resolution: EVENT_LOOP_RESOLUTION_MS });
  loop.enable();
  const server = createServer({ requestTimeout: SCRAPE_MAX_MS, headersTimeout: SCRAPE_MAX_MS }, (req, res) => {
    const found = req.url === '/metrics' && (req.method === 'GET' || req.method === 'HEAD');
    const text = found ? render(sources, loop) : 'Metrics are at /metrics\n';
    res.writeHead(found ? 200 : 404, {
      'Content-Type': `text/plain; ${found ? 'version=0.0.4; ' : ''}charset=utf-8`,
      'Content-Length': Buffer.byteLength(text),
    });
    res.end(text);
  });
  server.maxConnections = SCRAPERS_MAX;
  await listen(server, at, log);
  return server;
}
