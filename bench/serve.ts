/** `npm run bench -- serve`: the service as it is measured, for load generators of your own. */
import type { Bench } from './bench.ts';
import { pinned } from './machine.ts';
import { number } from './numbers.ts';
import { ANIMALS, CONNECTIONS, openShop, PAGE } from './paths.ts';
import { PEERS, peerCommand } from './peers.ts';
import { get, sendAll } from './requests.ts';

const PATHS = [`/v1/pets?limit=${PAGE}`, '/v1/pets/1'];

export async function serveForOthers(bench: Bench, until: Promise<unknown>): Promise<void> {
  const { store, key } = await openShop(bench);
  const server = await store.serve();
  const wrk = pinned(bench.cores?.load, ['wrk', '-t1', `-c${CONNECTIONS}`, '-d10s', '--latency']).join(' ');
  const header = `-H 'Authorization: Bearer ${key}'`;
  const commands: string[] = [];
  for (const path of PATHS) {
    const replies = await sendAll(server.origin, [get(path, key)]);
    const bare = await bench.start(PEERS.bare.name, peerCommand(PEERS.bare, [bench.jsonFile('replies', replies)]));
    const loaded = [['petstore', server] as const, [PEERS.bare.name, bare] as const];
    for (const [name, { origin, pid }] of loaded) {
      commands.push(`${wrk} ${header} '${origin}${path}' # ${name}, process ${pid}`);
    }
  }
  const onCore = bench.cores ? `, on core ${bench.cores.server} alone` : '';
  console.log(`petstore with ${number(ANIMALS)} animals listens on ${server.origin}${onCore}. Beside it, for the list and for one animal,
a ${PEERS.bare.name} answers every GET with the same bytes. Type these in another terminal, or give other tools the
header and the addresses. First load each for a few seconds, then take them in turn. The CPU time of a process, in
hundredths of a second, is the sum of the fields 14 and 15 in /proc/PROCESS/stat; divide what it grew by through the
number of requests, and ${PEERS.bare.name}'s by petstore's.

curl -i ${header} '${server.origin}${PATHS[0]}'
${commands.join('\n')}

^C ends all.`);
  await until;
}
