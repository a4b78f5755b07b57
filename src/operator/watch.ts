/**
 * What a deployer watches: the log, as JSON lines on stderr, and metrics in Prometheus' text format. The log never waits
 * for its reader: lines wait in a bounded stream; those that do not fit are dropped and counted, and the count is logged.
 */
import { fstatSync, write } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { Writable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import { formatKeyId } from '../access/keys.ts';
import type { Clock } from '../clock.ts';
import type { Summary } from '../service/routes.ts';
import type { Service } from '../service/service.ts';
import { HIDDEN, visible, withoutKeys } from '../text.ts';
import type { Context } from './commands.ts';
import { COMMIT, RUNTIME, VERSION } from './program.ts';

type Fields = Record<string, unknown>;

const MAX_BUFFER_BYTES = 1_048_576;
const MAX_LAST_LINES_MS = 250;
const STDERR = 2;
const MAX_TARGET_CHARS = 512;

/**
 * A key that a client put into an address, complete or not, percent-encoded or not: any run of letters and digits longer
 * than an id or a word of an address.
 */
const LONG_RUN = /(?:[0-9A-Za-z]|%[0-9A-Fa-f]{2}){20,}/g;

export function logTo(out: Writable, clock: Clock) {
  out.on('error', () => {}); // the reader is gone
  let dropped = 0;
  const add = (level: string, message: string, fields?: Fields): void => {
    if (out.writableLength > MAX_BUFFER_BYTES) {
      dropped++;
      return;
    }
    const droppedBefore = dropped || undefined;
    dropped = 0;
    const entry = { time: new Date(clock.wall()).toISOString(), level, message, droppedBefore, ...fields };
    // A key must never be read in a log, not even one that the operator put into a name.
    out.write(`${withoutKeys(visible(JSON.stringify(entry, plain)))}\n`);
  };
  return {
    info: (message: string, fields?: Fields) => add('info', message, fields),
    warn: (message: string, fields?: Fields) => add('warn', message, fields),
    error: (message: string, fields?: Fields) => add('error', message, fields),
    /** A line of the access log. */
    access({ requestId, method, target, status, ms, keyId, address }: Summary): void {
      const hidden = target?.replace(LONG_RUN, HIDDEN);
      const cut = hidden && hidden.length > MAX_TARGET_CHARS ? `${hidden.slice(0, MAX_TARGET_CHARS)}…` : hidden;
      const [key, rounded] = [keyId && formatKeyId(keyId), Math.round(ms * 1_000) / 1_000];
      add('access', 'request', { requestId, method, target: cut, status, ms: rounded, key, address: address() });
    },
    /** For the end of the process: resolves when all is written, or when the reader has had `MAX_LAST_LINES_MS`. */
    async close(): Promise<void> {
      const written = new Promise((resolve) => out.write('', resolve)); // after all that waits before it
      await Promise.race([written, wait(MAX_LAST_LINES_MS)]);
    },
  };
}

/** Replaces values that JSON.stringify cannot write: bigints and errors. */
function plain(_name: string, value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString();
  return value instanceof Error ? (value.stack ?? value.message) : value;
}

/**
 * The reader of stderr may stop, and must not stop us. Node writes to a pipe or a socket without waiting. To a file or a
 * terminal a thread of Node's pool writes. A line for which a file has no room is lost, and the next may find room.
 */
export function stderrWithoutWaiting(): Writable {
  const kind = fstatSync(STDERR);
  if (kind.isFIFO() || kind.isSocket()) return process.stderr;
  return new Writable({
    writev: (chunks, done) => write(STDERR, Buffer.concat(chunks.map(({ chunk }) => chunk)), () => done()),
  });
}

const EVENT_LOOP_RESOLUTION_MS = 10;
const MAX_SCRAPERS = 16;
const BUCKETS_MS = [0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, Infinity];

/** Durations: how many are no longer than each bound, and their sum. */
class Durations {
  readonly #counts = BUCKETS_MS.map(() => 0);
  #sumMs = 0;

  add(ms: number): void {
    for (let i = BUCKETS_MS.length - 1; ms <= BUCKETS_MS[i]; i--) this.#counts[i]++;
    this.#sumMs += ms;
  }

  /** `label`: such as `route="listPets"`. */
  samples(label = ''): Sample[] {
    const buckets = BUCKETS_MS.map((bound, i): Sample => {
      const le = bound === Infinity ? '+Inf' : bound / 1_000;
      return [`${label && `${label},`}le="${le}"`, this.#counts[i], '_bucket'];
    });
    return [...buckets, [label, this.#sumMs / 1_000, '_sum'], [label, this.#counts.at(-1)!, '_count']];
  }
}

export class Metrics {
  /** By operation: there are few, and a client cannot add one. */
  readonly #routes = new Map<string, { durations: Durations; statuses: Map<number, number> }>();
  readonly #batches = new Durations();
  readonly #loop = monitorEventLoopDelay({ resolution: EVENT_LOOP_RESOLUTION_MS });

  constructor() {
    this.#loop.enable();
  }

  /** Called for every reply: must cost well under a microsecond. */
  countReply({ route: name, status, ms }: Summary): void {
    let route = this.#routes.get(name);
    if (route === undefined) this.#routes.set(name, (route = { durations: new Durations(), statuses: new Map() }));
    route.statuses.set(status, (route.statuses.get(status) ?? 0) + 1);
    route.durations.add(ms);
  }

  /** Called for each batch that became durable. */
  readonly countBatch = (ms: number): void => this.#batches.add(ms);

  /** `counts`: what the service counts. */
  text({ engine, lastBackupAt = 0 }: Context, { connections, refused, sharedAllowance, bans }: Service['counts']) {
    // Node measures the time between two of its timers: the delay is what is beyond the wait from one to the next.
    const loopDelay = Math.max(0, this.#loop.max / 1e6 - EVENT_LOOP_RESOLUTION_MS) / 1_000;
    this.#loop.reset();
    const routes = [...this.#routes];
    const requests = routes.flatMap(([route, { statuses }]) =>
      Array.from(statuses, ([status, count]): Sample => [`route="${route}",status="${status}"`, count]),
    );
    const durations = routes.flatMap(([route, { durations }]) => durations.samples(`route="${route}"`));
    const byBound = Object.entries(refused).map(([bound, count]): Sample => [`bound="${bound}"`, count]);
    const { pets, orders, categories, keys, replays } = engine.store.read;
    const { userCPUTime, systemCPUTime } = process.resourceUsage();
    const built = `version="${VERSION}",commit="${COMMIT}",runtime="${RUNTIME}"`;
    return [
      gauge('petstore_open_connections', 'Connections that are open.', connections),
      counter('petstore_connections_refused_total', 'Connections refused, by the bound that was reached.', byBound),
      counter('petstore_requests_counted_together_total', 'Without a key, in the shared allowance.', sharedAllowance),
      counter('petstore_bans_total', 'Bans of keys that have begun.', bans),
      counter('petstore_requests_total', 'Requests answered, by operation and status.', requests),
      histogram('petstore_request_duration_seconds', 'From head of request to reply, by operation.', durations),
      histogram('petstore_log_batch_duration_seconds', 'To make a batch durable.', this.#batches.samples()),
      gauge('petstore_build_info', 'The program that runs: always 1.', [[built, 1]]),
      gauge('petstore_animals', 'How many animals there are.', pets.size),
      gauge('petstore_orders', 'How many orders there are.', orders.size),
      gauge('petstore_categories', 'How many categories there are.', categories.size),
      gauge('petstore_keys', 'How many keys there are.', keys.size),
      gauge('petstore_idempotency_records', 'Idempotency-Keys that are remembered.', replays.size),
      gauge('petstore_event_loop_delay_max_seconds', 'Worst delay since the last scrape.', loopDelay),
      gauge('petstore_last_backup_timestamp_seconds', 'The newest backup (Unix); 0: none.', lastBackupAt / 1_000),
      gauge('process_resident_memory_bytes', 'Memory held by the process.', process.memoryUsage.rss()),
      counter('process_cpu_seconds_total', 'Processor time used.', (userCPUTime + systemCPUTime) / 1e6),
      gauge('process_start_time_seconds', 'Start of the process (Unix).', performance.timeOrigin / 1_000),
      ...engine.metrics().map(({ name, help, value, type }) => metric(type)(name, help, value)),
    ].join('');
  }
}

/** A value with its labels, such as `route="listPets"`, and an ending of the name, such as `_sum`. */
type Sample = [labels: string, value: number, ending?: string];

const metric = (type: string) => (name: string, help: string, value: number | Sample[]) => {
  const samples: Sample[] = typeof value === 'number' ? [['', value]] : value;
  const lines = samples.map(([labels, one, ending = '']) => `${name}${ending}${labels && `{${labels}}`} ${one}\n`);
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`;
};
const [gauge, counter, histogram] = [metric('gauge'), metric('counter'), metric('histogram')];

/** Metrics have an address of their own, since they are not for the public. `text` makes the page. */
export function metricsServer(text: () => string): Server {
  const server = createServer(({ method = '', url }, res) => {
    res.setHeader('Content-Type', 'text/plain; version=0.0.4; charset=utf-8');
    if (url === '/metrics' && ['GET', 'HEAD'].includes(method)) res.end(text());
    else res.writeHead(404).end('Metrics are at /metrics\n');
  });
  server.maxConnections = MAX_SCRAPERS; // the newest beyond them is closed
  return server;
}
