/** Mixed load for ten minutes (or `--seconds N`): memory must become flat, and latency stay what it was. */
import type { Bench } from '../bench.ts';
import { load } from '../loader.ts';
import { cpuSeconds, residentMb, spread } from '../measure.ts';
import { Store } from '../service.ts';
import { ANIMALS, RARE_EVERY } from '../subjects.ts';
import { mixedCalls } from './mixed.ts';

export const SOAK_SECONDS = 600;
const PER_SECOND = 1_000;
const CONNECTIONS = 32;
/** The load comes in parts, so that there is something to show while it runs, and a latency for each. */
const PARTS = 20;
/** One in ten requests adds an animal, which is kept: that much growth is right. */
const ADDED_SHARE = 0.1;

export async function soak(bench: Bench): Promise<void> {
  const store = new Store(bench);
  await store.fill(ANIMALS, RARE_EVERY);
  const calls = mixedCalls(await store.key());
  const server = await store.serve();
  const seconds = bench.soakSeconds / PARTS;
  const memory: number[] = [];
  const [p99, cpuMicros]: number[][] = [[], []];
  for (let part = 0; part < PARTS; part++) {
    bench.progress(`soak: part ${part + 1} of ${PARTS}, ${residentMb(server.pid).toFixed(0)} MB`);
    const before = cpuSeconds(server.pid);
    const order = { origin: server.origin, calls, connections: CONNECTIONS, perSecond: PER_SECOND, seconds };
    const report = await load(bench, order);
    memory.push(residentMb(server.pid));
    p99.push(report.latency.p99);
    cpuMicros.push(((cpuSeconds(server.pid) - before) / report.requests) * 1e6);
    bench.results.rows.push({
      suite: 'soak',
      subject: `part ${part + 1}`,
      how: `${PER_SECOND.toLocaleString('en')} a second, mixed, ${seconds.toFixed(0)} s`,
      cpuMicros: spread([cpuMicros[part]]),
      latency: report.latency,
      memoryMb: memory[part],
    });
  }
  const quarter = PARTS / 4;
  const early = spread(memory.slice(quarter, 2 * quarter)).median;
  const late = spread(memory.slice(-quarter)).median;
  const added = Math.round((PER_SECOND * bench.soakSeconds * ADDED_SHARE) / 1000) * 1000;
  bench.figure('soak', 'memory, second quarter', `${early.toFixed(0)} MB`);
  bench.figure(
    'soak',
    'memory, last quarter',
    `${late.toFixed(0)} MB, with ${added.toLocaleString('en')} animals added`,
  );
  bench.figure('soak', 'p99, first part and last', `${p99[0].toFixed(2)} ms, ${p99[PARTS - 1].toFixed(2)} ms`);
  await server.stop();
}
