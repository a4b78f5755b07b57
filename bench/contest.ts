/** Loads servers in turn, A B B A …, so that what drifts on the machine drifts for all, and compares them round by round. */
import type { AimId } from './aims.ts';
import type { Bench } from './bench.ts';
import type { Call, LoadReport } from './load.ts';
import { load } from './loader.ts';
import { cpuSeconds, type Latency, ratios, residentMb, spread } from './measure.ts';
import type { Server } from './servers.ts';
import { SERVICE } from './service.ts';

export interface Subject {
  server: Server;
  calls: Call[];
  /** The name in tables, where it is not the server's. */
  name?: string;
  /** No aim names it: it is there for comparison, and loaded in every second round only. */
  aside?: boolean;
}

/** What came of one subject, round by round; NaN where it sat a round out. */
export interface Measured {
  name: string;
  /** All replies, those of the warming up too. */
  requests: number;
  perSecond: number[];
  cpuMicros: number[];
  latencies: Latency[];
}

/** The first subject is compared with all others. */
export async function contest(
  bench: Bench,
  suite: string,
  connections: number,
  subjects: Subject[],
): Promise<Map<string, Measured>> {
  const measured = new Map<string, Measured>();
  for (const subject of subjects) {
    const name = nameOf(subject);
    bench.progress(`${suite}: warming up ${name}`);
    const { requests } = await loadOnce(bench, subject, connections);
    measured.set(name, { name, requests, perSecond: [], cpuMicros: [], latencies: [] });
  }
  for (let round = 0; round < bench.rounds; round++) {
    for (const subject of round % 2 === 0 ? subjects : subjects.toReversed()) {
      const name = nameOf(subject);
      if (subject.aside && round % 2 === 1) {
        sitOut(measured.get(name)!);
        continue;
      }
      bench.progress(`${suite}: ${name}, round ${round + 1} of ${bench.rounds}`);
      await takeRound(bench, subject, connections, measured.get(name)!);
    }
  }
  for (const subject of subjects) {
    const { name, perSecond, cpuMicros, latencies } = measured.get(nameOf(subject))!;
    bench.results.rows.push({
      suite,
      subject: name,
      how: `saturated, ${connections.toLocaleString('en')} connections`,
      perSecond: spread(perSecond),
      cpuMicros: spread(cpuMicros),
      latency: middle(latencies),
      memoryMb: residentMb(subject.server.pid),
    });
  }
  compareFirst(bench, suite, [...measured.values()]);
  return measured;
}

function loadOnce(bench: Bench, { server, calls }: Subject, connections: number): Promise<LoadReport> {
  return load(bench, { origin: server.origin, calls, connections, seconds: bench.seconds });
}

async function takeRound(bench: Bench, subject: Subject, connections: number, into: Measured): Promise<void> {
  const before = cpuSeconds(subject.server.pid);
  const report = await loadOnce(bench, subject, connections);
  into.requests += report.requests;
  into.perSecond.push(report.requests / report.seconds);
  into.cpuMicros.push(((cpuSeconds(subject.server.pid) - before) / report.requests) * 1e6);
  into.latencies.push(report.latency);
}

function sitOut({ perSecond, cpuMicros }: Measured): void {
  perSecond.push(Number.NaN);
  cpuMicros.push(Number.NaN);
}

function nameOf(subject: Subject): string {
  return subject.name ?? subject.server.name;
}

function compareFirst(bench: Bench, suite: string, [first, ...others]: Measured[]): void {
  for (const other of others) {
    bench.results.ratios.push({
      suite,
      against: first.name === SERVICE ? other.name : `${first.name} : ${other.name}`,
      throughput: ratios(first.perSecond, other.perSecond),
      cpu: ratios(first.cpuMicros, other.cpuMicros),
    });
  }
}

/** Sets the reached value of an aim from two subjects of a contest, or says why there is none. */
export function reachRatio(
  bench: Bench,
  aim: AimId,
  measured: Map<string, Measured>,
  first: string,
  second: string,
): void {
  const [a, b] = [measured.get(first), measured.get(second)];
  if (a && b) bench.reach(aim, ratios(a.perSecond, b.perSecond), ratios(b.cpuMicros, a.cpuMicros).median);
  else bench.miss(aim, `${second} was left out`);
}

function middle(latencies: Latency[]): Latency {
  const of = (key: keyof Latency) => spread(latencies.map((latency) => latency[key])).median;
  return { p50: of('p50'), p90: of('p90'), p99: of('p99'), p999: of('p999'), max: of('max') };
}

/** Latency at a fixed rate, from the time each request was due. */
export async function atRate(
  bench: Bench,
  suite: string,
  subject: Subject,
  order: { perSecond: number; connections: number; seconds: number },
): Promise<void> {
  const name = nameOf(subject);
  bench.progress(`${suite}: ${name} at ${order.perSecond.toLocaleString('en')} requests a second`);
  const before = cpuSeconds(subject.server.pid);
  const report = await load(bench, { origin: subject.server.origin, calls: subject.calls, ...order });
  const cpuMicros = ((cpuSeconds(subject.server.pid) - before) / report.requests) * 1e6;
  bench.results.rows.push({
    suite,
    subject: name,
    how: `${order.perSecond.toLocaleString('en')} a second, ${order.connections} connections`,
    cpuMicros: spread([cpuMicros]),
    latency: report.latency,
    memoryMb: residentMb(subject.server.pid),
    senderLateMs: report.senderLateMs,
  });
}
