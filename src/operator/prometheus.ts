/** Prometheus' text format, on a listener of its own: what it tells is not for the public. */
import { createServer, type Server } from 'node:http';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Store } from '../store/model.ts';
import { listen } from './listen.ts';
import type { Log } from './logging.ts';
import type { Metrics, Sample, StoreFigures } from './metrics.ts';
import type { HostPort } from './options.ts';
import type { UsageRecorder } from './usage.ts';

const EVENT_LOOP_RESOLUTION_MS = 10;
const SCRAPE_MAX_MS = 5_000;
const SCRAPERS_MAX = 16;

interface Family {
  name: string;
  type: 'counter' | 'gauge' | 'histogram';
  help: string;
  samples: Sample[];
}

const counter = (name: string, help: string, value: number): Family => ({
  name,
  type: 'counter',
  help,
  samples: [{ value }],
});

const gauge = (name: string, help: string, value: number): Family => ({
  name,
  type: 'gauge',
  help,
  samples: [{ value }],
});

function requestFamilies(metrics: Metrics): Family[] {
  return [
    {
      name: 'petstore_requests_total',
      type: 'counter',
      help: 'Requests answered, by operation and status.',
      samples: metrics.requests(),
    },
    {
      name: 'petstore_request_duration_seconds',
      type: 'histogram',
      help: 'Time from the head of a request to its reply, by operation.',
      samples: metrics.latency(),
    },
    counter('petstore_refusals_total', 'Requests refused by a limit or a ban.', metrics.refusals()),
  ];
}

/** The process itself. The event loop's monitor is reset with every scrape. */
function processFamilies(loop: ReturnType<typeof monitorEventLoopDelay>): Family[] {
  const { rss, heapUsed, external } = process.memoryUsage();
  const { userCPUTime, systemCPUTime } = process.resourceUsage();
  const [mean, worst] = [loop.mean, loop.max].map((ns) => (Number.isFinite(ns) ? ns / 1e9 : 0));
  loop.reset();
  return [
    gauge('petstore_event_loop_delay_mean_seconds', 'Mean delay of the event loop since the last scrape.', mean),
    gauge('petstore_event_loop_delay_max_seconds', 'Worst delay of the event loop since the last scrape.', worst),
    gauge('process_resident_memory_bytes', 'Memory held by the process.', rss),
    gauge('petstore_heap_used_bytes', 'Memory used by objects.', heapUsed),
    gauge('petstore_external_memory_bytes', 'Memory used by buffers.', external),
    counter('process_cpu_seconds_total', 'Processor time used.', (userCPUTime + systemCPUTime) / 1e6),
    gauge('process_start_time_seconds', 'When the process began, in Unix time.', performance.timeOrigin / 1_000),
  ];
}

function render(families: Family[]): string {
  let text = '';
  for (const { name, type, help, samples } of families) {
    text += `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`;
    for (const { suffix = '', labels = {}, value } of samples) {
      const pairs = Object.entries(labels).map(([key, of]) => `${key}="${of.replace(/["\\\n]/g, '_')}"`);
      text += `${name}${suffix}${pairs.length > 0 ? `{${pairs.join(',')}}` : ''} ${value}\n`;
    }
  }
  return text;
}

interface Sources {
  metrics: Metrics;
  figures: StoreFigures;
  store: Store;
  usage: UsageRecorder;
}

function storeFamilies({ figures, store, usage }: Sources): Family[] {
  const { pets, orders, categories, keys } = store.read.counts();
  return [
    counter('petstore_bans_total', 'Bans of keys that have begun.', usage.bans),
    counter('petstore_log_records_total', 'Operations written to the log.', figures.records),
    counter('petstore_log_bytes_total', 'Bytes written to the log.', figures.bytes),
    {
      name: 'petstore_log_batch_duration_seconds',
      type: 'histogram',
      help: 'Time to write a batch of operations and to make it durable.',
      samples: figures.sync.samples({}),
    },
    gauge('petstore_animals', 'Animals in the store.', pets),
    gauge('petstore_orders', 'Orders in the store.', orders),
    gauge('petstore_categories', 'Categories in the store.', categories),
    gauge('petstore_keys', 'Keys ever made.', keys),
  ];
}

/** Listens; the result closes it again. */
export async function openMetrics(at: HostPort, sources: Sources, log: Log): Promise<Server> {
  const loop = monitorEventLoopDelay({ resolution: EVENT_LOOP_RESOLUTION_MS });
  loop.enable();
  const server = createServer({ requestTimeout: SCRAPE_MAX_MS, headersTimeout: SCRAPE_MAX_MS }, (req, res) => {
    const found = req.url === '/metrics' && (req.method === 'GET' || req.method === 'HEAD');
    const families = () => [...requestFamilies(sources.metrics), ...storeFamilies(sources), ...processFamilies(loop)];
    const text = found ? render(families()) : 'Metrics are at /metrics\n';
    res.writeHead(found ? 200 : 404, {
      'Content-Type': `text/plain; ${found ? 'version=0.0.4; ' : ''}charset=utf-8`,
      'Content-Length': Buffer.byteLength(text),
    });
    res.end(req.method === 'HEAD' ? undefined : text);
  });
  server.maxConnections = SCRAPERS_MAX;
  await listen(server, at, log);
  return server;
}
