/** Loads servers in turn, A B B A …, so that what drifts on the machine drifts for all, and compares round by round. */
import type { Bench } from './bench.ts';
import type { Report } from './generator.ts';
import { number, ratios, type Spread, spread } from './numbers.ts';
import type { Server } from './processes.ts';
import type { Part, Row } from './results.ts';

export interface Subject {
  name: string;
  server: Server;
  /** The requests that it is sent. */
  file: string;
}

export interface Contest {
  part: Part;
  path: string;
  connections: number;
}

/** Code is compiled by then. On a busy machine a second is not enough for so many requests. */
const WARM_UP = { seconds: 1, requests: 8_000, times: 2 };
/** For latency: the same rate for all. */
const PACED_PER_SECOND = 1_000;
const PACED_SECONDS = 2;
/** Latency at a rate near to the highest one is that of a queue. */
const SPARE = 2;
const PACED_CONNECTIONS = 32;
/** A generator that is busy for longer is what limits the rate. */
const GENERATOR_IS_BUSY = 0.97;
/** A generator later than this at p99 makes the latency longer than it is. */
const LATE_MS = 1;

/** The first subject is compared with all others. */
export async function contest(bench: Bench, { part, path, connections }: Contest, subjects: Subject[]): Promise<void> {
  const { rounds, seconds, thorough } = bench.settings;
  const reports = subjects.map((): Report[] => []);
  const load = ({ server, file }: Subject, seconds: number) => {
    return bench.load({ origin: server.origin, pid: server.pid, file, connections, seconds });
  };
  for (const subject of subjects) {
    bench.progress(`${path}: ${subject.name}, warming up`);
    for (let [times, requests] = [0, 0]; times < WARM_UP.times && requests < WARM_UP.requests; times++) {
      requests += (await load(subject, WARM_UP.seconds)).requests;
    }
  }
  const order = subjects.map((_, at) => at);
  for (let round = 1; round <= rounds; round++) {
    for (const at of round % 2 === 1 ? order : order.toReversed()) {
      bench.progress(`${path}: ${subjects[at].name}, round ${round} of ${rounds}`);
      reports[at].push(await load(subjects[at], seconds));
    }
  }
  const rows: Row[] = subjects.map(({ name }, at) => {
    const loadIsLimit = spread(reports[at].map(({ busy }) => busy)).median > GENERATOR_IS_BUSY;
    const perSecond = spread(rates(reports[at]));
    return { part, path, subject: name, connections, perSecond, cpuMicros: cpuSpread(reports[at]), loadIsLimit };
  });
  for (const [at, subject] of subjects.entries()) {
    if (part === 'scale' || (at > 0 && !thorough)) continue;
    if (rows[at].perSecond.median < SPARE * PACED_PER_SECOND) {
      bench.note(`${path}, ${subject.name}: too slow here for its latency at ${number(PACED_PER_SECOND)} a second.`);
      continue;
    }
    rows[at].latency = await latencyOf(bench, path, subject);
  }
  bench.results.rows.push(...rows);
  for (const at of order.slice(1)) {
    const throughput = ratios(rates(reports[0]), rates(reports[at]));
    const [own, other] = [cpuMicros(reports[0]), cpuMicros(reports[at])];
    const cpu = own && other && ratios(other, own);
    const loadIsLimit = rows[0].loadIsLimit || rows[at].loadIsLimit;
    bench.results.ratios.push({ part, path, against: subjects[at].name, throughput, cpu, loadIsLimit });
  }
}

const rates = (reports: Report[]) => reports.map(({ requests, seconds }) => requests / seconds);

/** CPU time a request, round by round; undefined where the system does not tell it. */
export function cpuMicros(reports: Report[]): number[] | undefined {
  const all = reports.map(({ cpuSeconds = Number.NaN, requests }) => (cpuSeconds / requests) * 1e6);
  return all.some(Number.isNaN) ? undefined : all;
}

function cpuSpread(reports: Report[]): Spread | undefined {
  const all = cpuMicros(reports);
  return all && spread(all);
}

async function latencyOf(bench: Bench, path: string, { name, server, file }: Subject): Promise<Row['latency']> {
  bench.progress(`${path}: ${name} at ${number(PACED_PER_SECOND)} requests a second`);
  const rate = { perSecond: PACED_PER_SECOND, seconds: PACED_SECONDS, connections: PACED_CONNECTIONS };
  const { latency } = await bench.load({ origin: server.origin, pid: server.pid, file, ...rate });
  const { p50, p99, max, late } = latency!;
  return { perSecond: PACED_PER_SECOND, p50, p99, max, isAtMost: late > LATE_MS };
}
