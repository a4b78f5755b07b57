/** Loads servers in turn, A B B A …, so that what drifts on the machine drifts for all; compares round by round. */
import type { AimId } from './aims.ts';
import type { Call } from './ask.ts';
import type { Bench } from './bench.ts';
import { saturate, sendPaced } from './load.ts';
import { cpuSeconds, type Latency, ratios, type Spread, spread } from './measure.ts';
import type { Server } from './servers.ts';

/** A sender later than this at p99 colours what it measures. */
const LATE_MS = 1;

export interface Subject {
  name: string;
  server: Server;
  calls: Call[];
}

/** What came of one subject, round by round. */
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
  const all = subjects.map(({ name }): Measured => {
    return { name, requests: 0, perSecond: [], cpuMicros: [], latencies: [] };
  });
  const order = subjects.map((_, at) => at);
  for (let round = 0; round <= bench.rounds; round++) {
    for (const at of round % 2 === 1 ? order : order.toReversed()) {
      const { name, server, calls } = subjects[at];
      bench.progress(`${suite}: ${name}, ${round === 0 ? 'warming up' : `round ${round} of ${bench.rounds}`}`);
      const before = cpuSeconds(server.pid);
      const report = await saturate(bench, { origin: server.origin, calls, connections, seconds: bench.seconds });
      all[at].requests += report.requests;
      if (round === 0) continue;
      all[at].perSecond.push(report.requests / report.seconds);
      all[at].cpuMicros.push(((cpuSeconds(server.pid) - before) / report.requests) * 1e6);
      all[at].latencies.push(report.latency);
    }
  }
  const how = `saturated, ${connections.toLocaleString('en')} connections`;
  for (const { name, perSecond, cpuMicros, latencies } of all) {
    const latency = middle(latencies);
    const spreads = { perSecond: spread(perSecond), cpuMicros: spread(cpuMicros) };
    bench.results.rows.push({ suite, subject: name, how, ...spreads, latency });
  }
  for (const { name, perSecond, cpuMicros } of all.slice(1)) {
    const throughput = ratios(all[0].perSecond, perSecond);
    const against = `${all[0].name} : ${name}, ${connections.toLocaleString('en')}`;
    bench.results.ratios.push({ suite, against, throughput, cpu: ratios(all[0].cpuMicros, cpuMicros) });
  }
  return new Map(all.map((one) => [one.name, one]));
}

/**
 * CPU time a request of the second of two subjects as a multiple of the first's, while both are loaded at once: they
 * share a core, so whatever slows the machine slows both alike.
 */
export async function sideBySide(
  bench: Bench,
  suite: string,
  connections: number,
  pair: [Subject, Subject],
): Promise<Spread> {
  const against = `${pair[0].name} : ${pair[1].name}`;
  const rounds: number[] = [];
  for (let round = 0; round <= bench.rounds; round++) {
    const which = round === 0 ? 'warming up' : `round ${round} of ${bench.rounds}`;
    bench.progress(`${suite}: ${against}, both at once, ${which}`);
    const before = pair.map(({ server }) => cpuSeconds(server.pid));
    const load = ({ server, calls }: Subject) => {
      return saturate(bench, { origin: server.origin, calls, connections, seconds: 2 * bench.seconds });
    };
    const reports = await Promise.all(pair.map(load));
    const [first, second] = pair.map(({ server }, at) => (cpuSeconds(server.pid) - before[at]) / reports[at].requests);
    if (round > 0) rounds.push(second / first);
  }
  const cpu = spread(rounds);
  const value = `${cpu.median.toFixed(2)} (${cpu.min.toFixed(2)} to ${cpu.max.toFixed(2)})`;
  bench.figure(suite, `CPU a request of ${pair[1].name} in that of ${pair[0].name}, both loaded at once`, value);
  return cpu;
}

/**
 * Sets the reached value of an aim from two subjects of a contest; what was left out is missed. `beside`: their CPU time
 * when both were loaded at once, if that was measured.
 */
export function reachRatio(
  bench: Bench,
  aim: AimId,
  measured: Map<string, Measured>,
  pair: [string, string],
  beside?: Spread,
): void {
  const [a, b] = pair.map((name) => measured.get(name));
  if (a === undefined || b === undefined) return;
  const { median } = beside ?? ratios(b.cpuMicros, a.cpuMicros);
  bench.reach(aim, ratios(a.perSecond, b.perSecond), median);
}

/** The same of server CPU time a request: the first's part of the second's. */
export function reachCpu(bench: Bench, aim: AimId, measured: Map<string, Measured>, pair: [string, string]): void {
  const [a, b] = pair.map((name) => measured.get(name));
  if (a !== undefined && b !== undefined) bench.reach(aim, ratios(a.cpuMicros, b.cpuMicros));
}

function middle(latencies: Latency[]): Latency {
  const of = (key: keyof Latency) => spread(latencies.map((latency) => latency[key])).median;
  return { p50: of('p50'), p90: of('p90'), p99: of('p99'), p999: of('p999'), max: of('max') };
}

/** Latency at a fixed rate, from the time each request was due. */
export async function atRate(bench: Bench, suite: string, subject: Subject, perSecond: number): Promise<void> {
  const rate = `${perSecond.toLocaleString('en')} a second`;
  bench.progress(`${suite}: ${subject.name} at ${rate}`);
  const { server, calls, name } = subject;
  const before = cpuSeconds(server.pid);
  const order = { origin: server.origin, calls, connections: 32, perSecond, seconds: 2 * bench.seconds };
  const { requests, latency, senderLateMs } = await sendPaced(bench, order);
  const cpuMicros = spread([((cpuSeconds(server.pid) - before) / requests) * 1e6]);
  bench.results.rows.push({ suite, subject: name, how: rate, cpuMicros, latency });
  if (senderLateMs > LATE_MS) {
    bench.note(`${suite}, ${name} at ${rate}: the sender itself was late, ${senderLateMs.toFixed(1)} ms at p99.`);
  }
}
