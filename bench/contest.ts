/** Loads the service and others in turn, and compares each round of another with the service's rounds beside it. */
import { type Bench, ROUND_SECONDS } from './bench.ts';
import type { Latency, Report } from './generator.ts';
import { number, quantile, type Spread, spread } from './numbers.ts';
import type { Server } from './processes.ts';
import type { Row } from './results.ts';

export interface Subject {
  name: string;
  server: Server;
  /** The requests that it is sent. */
  file: string;
  leavesOut?: string;
}

interface Path {
  path: string;
  connections: number;
  /** By default WARM_UP_SECONDS. */
  warmUpSeconds?: number;
}

/** Code is compiled by then (Node 26 takes longer), that of the server and, before latency is measured, of the client. */
const WARM_UP_SECONDS = 2.5;
const PACED_WARM_UP_SECONDS = 0.5;
/** For latency: the same rate for all. */
const PACED = { perSecond: 1_000, connections: 32 };
/** Latency at a rate near to the highest one is that of a queue. */
const SPARE = 2;
/** A generator that is busy for longer is what limits the rate. */
const GENERATOR_IS_BUSY = 0.97;
/** A generator whose own delay at p99 is a larger part of the latency makes it longer than it is. */
const LATE_SHARE = 0.5;

/** The first subject is the service, or what else is compared with all others. */
export async function contest(bench: Bench, path: Path, subjects: Subject[]): Promise<void> {
  const { connections, warmUpSeconds = WARM_UP_SECONDS } = path;
  const { rounds } = bench.settings;
  const load = ({ name, server, file }: Subject, seconds: number, what: string) => {
    bench.progress(`${path.path}: ${name}, ${what}`);
    return bench.load(server, { file, connections, seconds });
  };
  for (const subject of subjects) await load(subject, warmUpSeconds, 'warming up');

  // A X A Y A X A Y A: every round of X and Y stands between two of A.
  const [service, ...others] = subjects;
  const own = [await load(service, ROUND_SECONDS, 'first round')];
  const theirs = others.map((): Report[] => []);
  for (let round = 1; round <= rounds; round++) {
    for (const [at, other] of others.entries()) {
      theirs[at].push(await load(other, ROUND_SECONDS, `round ${round} of ${rounds}`));
      own.push(await load(service, ROUND_SECONDS, `round ${round} of ${rounds}`));
    }
  }

  const ownRow = rowOf(path, service, own);
  const otherRows = others.map((other, at) => {
    const row = rowOf(path, other, theirs[at]);
    const isLimited = ownRow.loadIsLimit || row.loadIsLimit;
    // What drifts evenly cancels out in the mean of the rounds before and after.
    const ratio = (rate: (report: Report) => number) => {
      const ratios = theirs[at].map((report, round) => {
        const [before, after] = own.slice(round * others.length + at, round * others.length + at + 2).map(rate);
        return (before + after) / 2 / rate(report);
      });
      return ifKnown(spread(ratios));
    };
    row.service = { throughput: isLimited ? undefined : ratio(perSecond), cpu: ratio(perCpuSecond) };
    return row;
  });
  ownRow.latency = await latencyOf(bench, ownRow, service);
  bench.results.rows.push(ownRow, ...otherRows);
}

function rowOf({ path }: Path, { name, leavesOut }: Subject, reports: Report[]): Row {
  const loadIsLimit = spread(reports.map(({ busy }) => busy)).median > GENERATOR_IS_BUSY;
  const cpuMicros = ifKnown(spread(reports.map((report) => 1e6 / perCpuSecond(report))));
  return {
    ...{ path, subject: name, loadIsLimit, leavesOut, cpuMicros },
    perSecond: spread(reports.map(perSecond)),
  };
}

const perSecond = ({ requests, seconds }: Report) => requests / seconds;

/** NaN where the system does not tell CPU times. */
const perCpuSecond = ({ requests, cpuSeconds = Number.NaN }: Report) => requests / cpuSeconds;

const ifKnown = (value: Spread) => (Number.isNaN(value.median) ? undefined : value);

/** Undefined for a server that is too slow. */
async function latencyOf(bench: Bench, { path, subject, perSecond }: Row, { server, file }: Subject) {
  if (perSecond.median < SPARE * PACED.perSecond) return undefined;
  bench.progress(`${path}: ${subject} at ${number(PACED.perSecond)} requests a second`);
  await bench.load(server, { file, ...PACED, seconds: PACED_WARM_UP_SECONDS });
  const rounds: Latency[] = [];
  for (let round = 0; round < bench.settings.rounds; round++) {
    rounds.push((await bench.load(server, { file, ...PACED, seconds: ROUND_SECONDS })).latency!);
  }
  const p50 = spread(rounds.map(({ all }) => quantile(all, 0.5)));
  const all = rounds.flatMap((one) => one.all);
  const p99 = spread([quantile(all, 0.99)]); // of all rounds together: a median would hide a stall in one of them
  const late = spread(rounds.map((one) => one.late)).median;
  return { perSecond: PACED.perSecond, p50, p99, isAtMost: late > LATE_SHARE * p99.median };
}
