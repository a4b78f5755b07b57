/** The list through two replicas on one database, beside the file engine: server CPU time a request. */
import type { Bench } from './bench.ts';
import { cpuOf, inTurn } from './contest.ts';
import type { Report } from './generator.ts';
import { ratios, spread } from './numbers.ts';
import type { Server } from './processes.ts';
import { get, send } from './requests.ts';
import { Store } from './service.ts';

const ANIMALS = 1_000;
const REPLICAS = 2;
/** Enough for the requests that wait to share a take of the database. */
const CONNECTIONS = 128;

export async function measureStore(bench: Bench, url: string): Promise<void> {
  const replicas = await start(bench, REPLICAS, url);
  const single = await start(bench, 1);
  for (const warmUp of [replicas, single]) await warmUp();
  const reports = await inTurn(bench, 'store', [
    ['two replicas on one database', replicas],
    ['the file engine', single],
  ]);
  const [shared, own] = reports.map((rounds) => rounds.map((all) => mean(cpuOf(all))));
  if (own.some(Number.isNaN)) return bench.note('store is left out: this system does not tell CPU times.');
  const path = 'list through --store, CPU a request';
  bench.figure(`${path} of a replica`, '', spread(shared), 'µs');
  bench.figure(`${path} of the file engine`, '', spread(own), 'µs');
  bench.figure(path, 'the file engine', ratios(shared, own), '×');
}

const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** Gives the load of one round: on each server in turn, since the load generator has one load at a time. */
async function start(bench: Bench, count: number, url?: string): Promise<() => Promise<Report[]>> {
  const store = new Store(bench, { url });
  await store.fill(ANIMALS);
  const request = get('/v1/pets?limit=20', await store.key());
  const servers: Server[] = [];
  for (let n = 0; n < count; n++) servers.push(await store.serve());
  for (const { origin } of servers) await send(origin, request);
  const load = {
    file: bench.jsonFile('requests', [request]),
    connections: CONNECTIONS,
    seconds: bench.settings.seconds,
  };
  return async () => {
    const reports: Report[] = [];
    for (const server of servers) reports.push(await bench.load(server, load));
    return reports;
  };
}
