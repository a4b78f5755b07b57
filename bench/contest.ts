/** Loads servers in turn, A B B A …, so that what drifts on the machine drifts for all, and compares round by round. */
import type { Bench } from './bench.ts';
import type { Report } from './generator.ts';
import { number, ratios, type Spread, spread } from './numbers.ts';
import type { Server } from './processes.ts';
import type { Row } from './results.ts';

export interface Subject {
  name: string;
  server: Server;
  /** The requests that it is sent. */
  file: string;
  leavesOut?: string;
}

interface Path extends Pick<Row, 'part' | 'path' | 'connections'> {
  /** By default WARM_UP_SECONDS. */
  warmUpSeconds?: number;
}

/** Code is compiled by then, that of the server and, before latency is measured, that of the client. */
const WARM_UP_SECONDS = 1.5;
const PACED_WARM_UP_SECONDS = 1;
/** For latency: the same rate for all. */
const PACED = { perSecond: 1_000, seconds: 2, connections: 32 };
/** Latency at a rate near to the highest one is that of a queue. */
const SPARE = 2;
/** A generator that is busy for longer is what limits the rate. */
const GENERATOR_IS_BUSY = 0.97;
/** A generator later than this at p99 makes the latency longer than it is. */
const LATE_MS = 1;

/** Runs each of `loads` in each round; gives what each gave, round by round. */
export async function inTurn<T>(bench: Bench, path: string, loads: [name: string, load: () => Promise<T>][]) {
  const { rounds } = bench.settings;
  const gave = loads.map((): T[] => []);
  for (let round = 1; round <= rounds; round++) {
    const order = [...loads.entries()];
    for (const [at, [name, load]] of round % 2 === 1 ? order : order.reverse()) {
      bench.progress(`${path}: ${name}, round ${round} of ${rounds}`);
      gave[at].push(await load());
    }
  }
  return gave;
}

/** The first subject is the service, which is compared with all others. */
export async function contest(
  bench: Bench,
  { part, path, connections, warmUpSeconds = WARM_UP_SECONDS }: Path,
  subjects: Subject[],
): Promise<void> {
  const { seconds, thorough } = bench.settings;
  const load = ({ server, file }: Subject, seconds: number) => bench.load(server, { file, connections, seconds });
  for (const subject of subjects) {
    bench.progress(`${path}: ${subject.name}, warming up`);
    await load(subject, warmUpSeconds);
  }
  const reports = await inTurn(
    bench,
    path,
    subjects.map((subject) => [subject.name, () => load(subject, seconds)]),
  );
  const rows = subjects.map(({ name, leavesOut }, at): Row => {
    const loadIsLimit = spread(reports[at].map(({ busy }) => busy)).median > GENERATOR_IS_BUSY;
    const perSecond = spread(rates(reports[at]));
    const cpuMicros = ifKnown(spread(cpuOf(reports[at])));
    return { part, path, subject: name, connections, perSecond, loadIsLimit, cpuMicros, leavesOut };
  });
  for (const [at, row] of rows.entries()) {
    if (part !== 'scale' && (at === 0 || thorough)) row.latency = await latencyOf(bench, row, subjects[at]);
    if (at === 0) continue;
    const throughput = ratios(rates(reports[0]), rates(reports[at]));
    const isLimited = rows[0].loadIsLimit || row.loadIsLimit;
    const cpu = ifKnown(ratios(cpuOf(reports[at]), cpuOf(reports[0])));
    row.service = { throughput: isLimited ? undefined : throughput, cpu };
  }
  bench.results.rows.push(...rows);
}

const rates = (reports: Report[]) => reports.map(({ requests, seconds }) => requests / seconds);

/** CPU time a request in microseconds, round by round; NaN where the system does not tell it. */
export function cpuOf(reports: Report[]): number[] {
  return reports.map(({ cpuSeconds = Number.NaN, requests }) => (cpuSeconds / requests) * 1e6);
}

const ifKnown = (value: Spread) => (Number.isNaN(value.median) ? undefined : value);

/** Undefined for a server that is too slow. */
async function latencyOf(bench: Bench, { path, subject, perSecond }: Row, { server, file }: Subject) {
  const rate = `${number(PACED.perSecond)} requests a second`;
  if (perSecond.median < SPARE * PACED.perSecond) {
    const least = `servers that answer ${number(SPARE * PACED.perSecond)} or more: requests to a slower one would queue up`;
    bench.note(`Some latencies are missing (–). Latency is measured at ${rate}, of ${least}.`);
    return undefined;
  }
  bench.progress(`${path}: ${subject} at ${rate}`);
  await bench.load(server, { file, ...PACED, seconds: PACED_WARM_UP_SECONDS });
  const { latency } = await bench.load(server, { file, ...PACED });
  const { late, ...measured } = latency!;
  return { perSecond: PACED.perSecond, ...measured, isAtMost: late > LATE_MS };
}
