/** The load generator beside wrk, in turn. */
import type { Bench } from './bench.ts';
import { pinned, programOnPath } from './machine.ts';
import { ratios, spread } from './numbers.ts';
import { run } from './processes.ts';
import { get } from './requests.ts';
import { Store } from './service.ts';

const CONNECTIONS = 32;
const SECONDS = 2;
const WRK_MAX_MS = 60_000;

export async function checkWithWrk(bench: Bench): Promise<void> {
  const wrk = programOnPath('wrk');
  if (wrk === undefined) return bench.note('wrk is left out: it is not installed.');
  const store = new Store(bench);
  await store.fill(1_000);
  const request = get('/v1/pets?limit=20', await store.key());
  const { origin, pid } = await store.serve();
  const file = bench.requestFile([request]);
  const own = async () => {
    const report = await bench.load({ origin, pid, file, connections: CONNECTIONS, seconds: SECONDS });
    return report.requests / report.seconds;
  };
  const header = `Authorization: ${request.headers.Authorization}`;
  const words = ['-t1', `-c${CONNECTIONS}`, `-d${SECONDS}s`, '-H', header, origin + request.path];
  const other = async () => {
    const printed = await run(pinned(bench.cores?.load, [wrk, ...words]), WRK_MAX_MS);
    if (printed.includes('Non-2xx')) throw new Error(`wrk got wrong replies: ${printed}`);
    return Number(/Requests\/sec:\s+([\d.]+)/.exec(printed)?.[1]);
  };
  const [ours, theirs]: number[][] = [[], []];
  for (let round = 0; round <= bench.settings.rounds; round++) {
    bench.progress(`wrk: ${round === 0 ? 'warming up' : `round ${round} of ${bench.settings.rounds}`}`);
    const order = round % 2 === 0 ? [own, other] : [other, own];
    for (const load of order) {
      const rate = await load();
      if (round > 0) (load === own ? ours : theirs).push(rate);
    }
  }
  const path = 'list, one page, 1,000 animals';
  bench.results.figures.push(
    { part: 'wrk', path: `${path}: the load generator`, value: spread(ours), unit: 'requests/s' },
    { part: 'wrk', path: `${path}: wrk`, value: spread(theirs), unit: 'requests/s' },
    { part: 'wrk', path: 'the load generator', against: 'wrk', value: ratios(ours, theirs), unit: '×' },
  );
}
