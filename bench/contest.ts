/** Loads the service and others in turn, and compares each round of another with the service's rounds beside it. */
import type { Bench } from './bench.ts';
import type { Report } from './generator.ts';
import { number, ratioToNeighbours, type Spread, spread } from './numbers.ts';
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
const WARM_UP_SECONDS = 1.2;
const PACED_WARM_UP_SECONDS = 0.5;
/** For latency: the same rate for all. */
const PACED = { perSecond: 1_000, seconds: 2, connections: 32 };
/** Latency at a rate near to the highest one is that of a queue. */
const SPARE = 2;
/** A generator that is busy for longer is what limits the rate. */
const GENERATOR_IS_BUSY = 0.97;
/** A generator whose own delay at p99 is a larger part of the latency makes it longer than it is. */
const LATE_SHARE = 0.5;

/** The first subject is the service, or what else is compared with all others. */
export async function contest(bench: Bench, path: Path, subjects: Subject[]): Promise<void> {
  const { connections, warmUpSeconds = WARM_UP_SECONDS } = path;
  const { rounds, seconds } = bench.settings;
  const load = ({ name, server, file }: Subject, seconds: number, what: string) => {
    bench.progress(`${path.path}: ${name}, ${what}`);
    return bench.load(server, { file, connections, seconds });
  };
  for (const subject of subjects) await load(subject, warmUpSeconds, 'warming up');

  // A X A Y A X A Y A: every round of X and Y stands between two of A.
  const [service, ...others] = subjects;
  const own = [await load(service, seconds, 'first round')];
  const theirs = others.map(() => ({ reports: [] as Report[], neighbours: [] as [Report, Report][] }));
  for (let round = 1; round <= rounds; round++) {
    for (const [at, other] of others.entries()) {
      const before = own.at(-1)!;
      theirs[at].reports.push(await load(other, seconds, `round ${round} of ${rounds}`));
      const after = await load(service, seconds, `round ${round} of ${rounds}`);
      theirs[at].neighbours.push([before, after]);
      own.push(after);
    }
  }

  const ownRow = rowOf(path, service, own);
  const otherRows = others.map((other, at) => {
    const row = rowOf(path, other, theirs[at].reports);
    const isLimited = ownRow.loadIsLimit || row.loadIsLimit;
    const ratio = (rate: (report: Report) => number) => {
      const neighbours = theirs[at].neighbours.map(([before, after]): [number, number] => [rate(before), rate(after)]);
      return ifKnown(ratioToNeighbours(neighbours, theirs[at].reports.map(rate)));
    };
    row.service = { throughput: isLimited ? undefined : ratio(perSecond), cpu: ratio(perCpuSecond) };
    return row;
  });
  if (path.part !== 'scale') ownRow.latency = await latencyOf(bench, ownRow, service);
  bench.results.rows.push(ownRow, ...otherRows);
}

function rowOf({ part, path, connections }: Path, { name, leavesOut }: Subject, reports: Report[]): Row {
  const loadIsLimit = spread(reports.map(({ busy }) => busy)).median > GENERATOR_IS_BUSY;
  const cpuMicros = ifKnown(spread(reports.map((report) => 1e6 / perCpuSecond(report))));
  return {
    ...{ part, path, subject: name, connections, loadIsLimit, leavesOut, cpuMicros },
    perSecond: spread(reports.map(perSecond)),
  };
}

const perSecond = ({ requests, seconds }: Report) => requests / seconds;

/** NaN where the system does not tell CPU times. */
const perCpuSecond = ({ requests, cpuSeconds = Number.NaN }: Report) => requests / cpuSeconds;

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
  return { perSecond: PACED.perSecond, ...measured, isAtMost: late > LATE_SHARE * measured.p99 };
}
