/** What a compaction does to those who are being served meanwhile. */
import type { Bench } from '../../bench.ts';
import { load } from '../../loader.ts';
import { spread } from '../../measure.ts';
import type { Server } from '../../servers.ts';
import type { Store } from '../../service.ts';
import { mixedCalls } from '../mixed.ts';

const CONNECTIONS = 32;
const PER_SECOND = 1_000;
const LOAD_SECONDS = 5;
const WARM_UP_SECONDS = 2;
const ROUNDS_A_PAIR = 3;
const BEGINS_AFTER_MS = 1_000;

/** The longest reply of the same load with and without; the load outlasts the compaction. */
export async function compaction(bench: Bench, store: Store, server: Server, key: string): Promise<void> {
  const order = { origin: server.origin, calls: mixedCalls(key), connections: CONNECTIONS, perSecond: PER_SECOND };
  const longest = async () => (await load(bench, { ...order, seconds: LOAD_SECONDS })).latency.max;
  const [without, during, took]: number[][] = [[], [], []];
  await load(bench, { ...order, seconds: WARM_UP_SECONDS });
  for (let pair = 0; pair < Math.ceil(bench.rounds / ROUNDS_A_PAIR); pair++) {
    bench.progress('scale: mixed load, no compaction');
    without.push(await longest());
    bench.progress('scale: mixed load during a compaction');
    const compacting = new Promise<number>((resolve, reject) => {
      setTimeout(() => secondsOf(() => store.command('compact')).then(resolve, reject), BEGINS_AFTER_MS);
    });
    const [slowest, seconds] = await Promise.all([longest(), compacting]);
    during.push(slowest);
    took.push(seconds);
    if (seconds * 1000 + BEGINS_AFTER_MS > LOAD_SECONDS * 1000) {
      bench.note(`scale: a compaction took ${seconds.toFixed(1)} s, longer than the load beside it.`);
    }
  }
  const more = during.map((ms, pair) => ms - without[pair]);
  bench.reach('scale-compaction', spread(more));
  const figure = (values: number[], unit: string) => `${spread(values).median.toFixed(1)} ${unit}`;
  bench.figure('scale', 'longest reply without a compaction', figure(without, 'ms'));
  bench.figure('scale', 'longest reply during a compaction', figure(during, 'ms'));
  bench.figure('scale', 'a compaction of 1,000,000 animals under load', figure(took, 's'));
}

async function secondsOf(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return (performance.now() - began) / 1000;
}
