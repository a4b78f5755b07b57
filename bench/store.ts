/** The list through two replicas on one database, beside the file engine: server CPU time a request. */
import type { Bench } from './bench.ts';
import { cpuMicros } from './contest.ts';
import type { Report } from './generator.ts';
import { ratios, spread } from './numbers.ts';
import type { Server } from './processes.ts';
import { get, send } from './requests.ts';
import { Store } from './service.ts';

const ANIMALS = 1_000;
const REPLICAS = 2;
/** Enough for the requests that wait to share a take of the database. */
const CONNECTIONS = 128;

interface Engine {
  name: string;
  servers: Server[];
  file: string;
  reports: Report[];
}

export async function measureStore(bench: Bench, url: string): Promise<void> {
  const engines = [
    await start(bench, 'two replicas on one database', REPLICAS, url),
    await start(bench, 'the file engine', 1),
  ];
  const { rounds, seconds } = bench.settings;
  for (let round = 0; round <= rounds; round++) {
    for (const { name, servers, file, reports } of round % 2 === 0 ? engines : engines.toReversed()) {
      bench.progress(`store: ${name}, ${round === 0 ? 'warming up' : `round ${round} of ${rounds}`}`);
      // The load generator takes one order at a time: each replica has its turn.
      for (const { origin, pid } of servers) {
        const report = await bench.load({ origin, pid, file, connections: CONNECTIONS, seconds });
        if (round > 0) reports.push(report);
      }
    }
  }
  const [replica, file] = engines.map(({ reports }) => cpuMicros(reports));
  if (replica === undefined || file === undefined) return bench.note('store: this system tells no CPU time.');
  const path = 'list through --store, CPU a request';
  const together = Array.from({ length: rounds }, (_, round) => (replica[2 * round] + replica[2 * round + 1]) / 2);
  bench.results.figures.push(
    { part: 'store', path: `${path} of a replica`, value: spread(replica), unit: 'µs' },
    { part: 'store', path: `${path} of the file engine`, value: spread(file), unit: 'µs' },
    { part: 'store', path, against: 'the file engine', value: ratios(together, file), unit: '×' },
  );
}

async function start(bench: Bench, name: string, replicas: number, url?: string): Promise<Engine> {
  const store = new Store(bench, { url });
  await store.fill(ANIMALS);
  const request = get('/v1/pets?limit=20', await store.key());
  const servers: Server[] = [];
  for (let n = 0; n < replicas; n++) servers.push(await store.serve());
  for (const { origin } of servers) await send(origin, request);
  return { name, servers, file: bench.requestFile([request]), reports: [] };
}
