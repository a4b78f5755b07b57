/** All metrics in Prometheus' text format. */
import type { Engine, Metric } from '../engine.ts';
import { type Histogram, linesOf } from './histogram.ts';
import type { Figures } from './metrics.ts';
import { COMMIT, RUNTIME, VERSION } from './version.ts';

const BUILT_AS = `version="${VERSION}",commit="${COMMIT}",runtime="${RUNTIME}"`;

/** A value under its labels, such as `route="listPets"`. */
type Labelled<V> = [labels: string, value: V];

/** All but `figures` is read from the engine and the process. */
export function metricsText({ routes, ...figures }: Figures, engine: Engine): string {
  const requests = Array.from(routes, ([route, { statuses }]) =>
    Array.from(statuses, ([status, count]): Labelled<number> => [`route="${route}",status="${status}"`, count]),
  ).flat();
  const durations = Array.from(routes, ([route, { latency }]): Labelled<Histogram> => [`route="${route}"`, latency]);
  const refused = byLabel('bound', figures.refused);
  const together = byLabel('allowance', figures.together);
  const { read, maxBytes } = engine.store;
  const { pets: animals, ...others } = read.counts();
  const { userCPUTime, systemCPUTime } = process.resourceUsage();
  return [
    gauge('petstore_open_connections', 'Connections that are open.', figures.open),
    counter(
      'petstore_connections_refused_total',
      'Connections refused or ended, by the bound that was reached.',
      refused,
    ),
    counter(
      'petstore_requests_counted_together_total',
      'Requests in an allowance that many addresses share.',
      together,
    ),
    counter('petstore_requests_total', 'Requests answered, by operation and status.', requests),
    histogram(
      'petstore_request_duration_seconds',
      'Time from the head of a request to its reply, by operation.',
      durations,
    ),
    histogram('petstore_log_batch_duration_seconds', 'Time to make a batch of changes durable.', [
      ['', figures.batches],
    ]),
    gauge('petstore_build_info', 'The program that runs: always 1.', [[BUILT_AS, 1]]),
    ...Object.entries({ animals, ...others }).map(([things, count]) =>
      gauge(`petstore_${things}`, `How many ${things} there are.`, count),
    ),
    gauge('petstore_idempotency_records', 'Idempotency-Keys that are kept.', read.idempotency.size),
    gauge('petstore_store_bytes', 'Memory taken by the stored data.', read.bytes.total),
    gauge('petstore_store_max_bytes', 'Most memory that the stored data may take.', maxBytes),
    gauge('petstore_event_loop_delay_max_seconds', 'Worst delay since the last scrape.', figures.loopDelay),
    gauge('process_resident_memory_bytes', 'Memory held by the process.', process.memoryUsage.rss()),
    counter('process_cpu_seconds_total', 'Processor time used.', (userCPUTime + systemCPUTime) / 1e6),
    gauge('process_start_time_seconds', 'Start of the process (Unix).', performance.timeOrigin / 1_000),
    ...Array.from(engine.metrics(), ({ name, help, value, type }) => metric(name, help, type, linesFor(name, value))),
  ].join('');
}

const gauge = (name: string, help: string, value: number | Labelled<number>[]): string =>
  metric(name, help, 'gauge', linesFor(name, value));

const counter = (name: string, help: string, value: number | Labelled<number>[]): string =>
  metric(name, help, 'counter', linesFor(name, value));

function histogram(name: string, help: string, all: Labelled<Histogram>[]): string {
  const lines = all.flatMap(([labels, one]) => linesOf(one, name, labels));
  return metric(name, help, 'histogram', lines);
}

const metric = (name: string, help: string, type: Metric['type'] | 'histogram', lines: string[]): string =>
  [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...lines, ''].join('\n');

const linesFor = (name: string, value: number | Labelled<number>[]): string[] =>
  typeof value === 'number' ? [`${name} ${value}`] : value.map(([labels, one]) => `${name}{${labels}} ${one}`);

const byLabel = <N extends string>(label: string, counts: Record<N, number>): Labelled<number>[] =>
  Object.entries<number>(counts).map(([name, count]) => [`${label}="${name}"`, count]);
