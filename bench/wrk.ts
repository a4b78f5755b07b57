/** The load generator beside wrk, in turn. */
import type { Bench } from './bench.ts';
import { inTurn } from './contest.ts';
import { isOnPath, pinned } from './machine.ts';
import { ratios } from './numbers.ts';
import { run } from './processes.ts';
import { get } from './requests.ts';
import { Store } from './service.ts';

const CONNECTIONS = 32;
const SECONDS = 2;
const WRK_MAX_MS = 60_000;

export async function checkWithWrk(bench: Bench): Promise<void> {
  if (!isOnPath('wrk')) return bench.note('wrk is left out: it is not installed.');
  const store = new Store(bench);
  await store.fill(1_000);
  const request = get('/v1/pets?limit=20', await store.key());
  const server = await store.serve();
  const load = { file: bench.jsonFile('requests', [request]), connections: CONNECTIONS, seconds: SECONDS };
  const own = async () => {
    const { requests, seconds } = await bench.load(server, load);
    return requests / seconds;
  };
  const header = `Authorization: ${request.headers.Authorization}`;
  const words = ['-t1', `-c${CONNECTIONS}`, `-d${SECONDS}s`, '-H', header, server.origin + request.path];
  const other = async () => {
    const printed = await run(pinned(bench.cores?.load, ['wrk', ...words]), WRK_MAX_MS);
    if (printed.includes('Non-2xx')) throw new Error(`wrk got wrong replies: ${printed}`);
    return Number(/Requests\/sec:\s+([\d.]+)/.exec(printed)?.[1]);
  };
  await own(); // warms the server up
  const [ours, theirs] = await inTurn(bench, 'wrk', [
    ['the load generator', own],
    ['wrk', other],
  ]);
  bench.figure('the load generator: list, one page', 'wrk', ratios(ours, theirs), '×');
}
