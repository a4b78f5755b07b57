/** `npm run bench -- serve`: the service as it is measured, for load generators of your own. */
import type { Bench } from './bench.ts';
import { pinned } from './machine.ts';
import { number } from './numbers.ts';
import { ANIMALS, CONNECTIONS, openShop, PAGE } from './paths.ts';
import { PEERS, startPeer } from './peers.ts';
import { get, sendAll } from './requests.ts';

const SECONDS = 10;

export async function serveForOthers(bench: Bench, until: Promise<unknown>): Promise<void> {
  const { store, key } = await openShop(bench);
  const server = await store.serve();
  const path = `/v1/pets?limit=${PAGE}`;
  const replies = await sendAll(server.origin, [get(path, key)]);
  const bare = await startPeer(bench, PEERS.bare, [bench.jsonFile('replies', replies)]);
  const onCore = bench.cores ? `, on core ${bench.cores.server} alone` : '';
  console.log(`petstore with ${number(ANIMALS)} animals listens, and so does ${PEERS.bare.name}, which sends the same bytes:
  ${server.origin}   petstore (process ${server.pid}${onCore})
  ${bare.origin}   ${PEERS.bare.name} (process ${bare.pid}${onCore})
The key has no limits. Type one of these in another terminal; for ${PEERS.bare.name}, replace the port.

${linesFor(server.origin + path, key, bench.cores?.load).join('\n')}

^C ends both.`);
  await until;
}

/** What to type. A key has letters, digits and `_`, and an address none of what a shell reads within quotes. */
export function linesFor(url: string, key: string, core?: number): string[] {
  const header = `Authorization: Bearer ${key}`;
  const script = `import http from "k6/http"; const headers = { Authorization: "Bearer ${key}" }; export default () => http.get("${url}", { headers });`;
  const load = (...words: string[]) => pinned(core, words).join(' ');
  return [
    `curl -i -H '${header}' '${url}'`,
    load('wrk', '-t1', `-c${CONNECTIONS}`, `-d${SECONDS}s --latency -H '${header}' '${url}'`),
    load('hey', `-c ${CONNECTIONS} -z ${SECONDS}s -H '${header}' '${url}'`),
    load('npx autocannon', `-c ${CONNECTIONS} -d ${SECONDS} -H 'Authorization=Bearer ${key}' '${url}'`),
    load('oha', `-c ${CONNECTIONS} -z ${SECONDS}s -H '${header}' '${url}'`),
    `echo '${script}' | ${load('k6 run', `--vus ${CONNECTIONS} --duration ${SECONDS}s -`)}`,
  ];
}
