/** The list through two replicas on one database, beside the file engine: server CPU time a request. */
import { existsSync } from 'node:fs';
import { ROOT } from '../../scripts/bundle.ts';
import { get, mustAnswer } from '../ask.ts';
import type { Bench } from '../bench.ts';
import { saturate } from '../load.ts';
import { cpuSeconds, ratios, spread } from '../measure.ts';
import type { Server } from '../servers.ts';
import { SERVICE, Store } from '../service.ts';
import { ANIMALS, RARE_EVERY } from '../subjects.ts';

/** In all: enough for a take of the database to be one of many requests. */
const CONNECTIONS = 256;
/** A PostgreSQL of the run's own, as the tests start it. */
const DATABASE = `${ROOT}test/postgres/database.ts`;

interface Started {
  name: string;
  servers: Server[];
  key: string;
}

export async function store(bench: Bench): Promise<void> {
  if (!existsSync(`${ROOT}src/postgres`) || !existsSync(DATABASE)) {
    return bench.miss('store', 'there is no src/postgres, or no test/postgres/database.ts');
  }
  const { Database, missing } = await import(DATABASE);
  if (missing) return bench.miss('store', missing);
  bench.progress('store: starting PostgreSQL');
  const database = await Database.start();
  bench.atEnd(() => database.stop());
  const engines = [
    await start(bench, 'two replicas, --store', 2, database.url('bench')),
    await start(bench, `${SERVICE}, --data`, 1),
  ];
  const micros: number[][] = [[], []];
  for (let round = 0; round <= bench.rounds; round++) {
    for (const at of round % 2 === 1 ? [0, 1] : [1, 0]) {
      bench.progress(`store: ${engines[at].name}, ${round === 0 ? 'warming up' : `round ${round} of ${bench.rounds}`}`);
      const used = await load(bench, engines[at]);
      if (round > 0) micros[at].push(used);
    }
  }
  engines.forEach(({ name }, at) => {
    bench.figure('store', `${name}: CPU a request`, `${spread(micros[at]).median.toFixed(1)} µs`);
  });
  bench.reach('store', ratios(micros[0], micros[1]));
}

async function start(bench: Bench, name: string, replicas: number, url?: string): Promise<Started> {
  const place = new Store(bench, url);
  await place.fill(ANIMALS, RARE_EVERY);
  const key = await place.key();
  const servers: Server[] = [];
  for (let n = 0; n < replicas; n++) servers.push(await place.serve());
  for (const { origin } of servers) await mustAnswer(origin, get('/v1/pets?limit=20', key));
  return { name, servers, key };
}

/** Server CPU time a request, in microseconds, over all servers, which are asked at once. */
async function load(bench: Bench, { servers, key }: Started): Promise<number> {
  const used = () => servers.reduce((sum, { pid }) => sum + cpuSeconds(pid), 0);
  const before = used();
  const order = { calls: [get('/v1/pets?limit=20', key)], connections: CONNECTIONS / servers.length };
  const reports = await Promise.all(
    servers.map(({ origin }) => saturate(bench, { ...order, origin, seconds: bench.seconds })),
  );
  return ((used() - before) / reports.reduce((sum, { requests }) => sum + requests, 0)) * 1e6;
}
