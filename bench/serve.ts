/** `npm run bench -- serve`: the service as it is measured, for load generators of your own. */
import type { Bench } from './bench.ts';
import { pinned } from './machine.ts';
import { number } from './numbers.ts';
import { ANIMALS, CONNECTIONS, openShop, PAGE } from './paths.ts';
import { PEERS, peerCommand } from './peers.ts';
import { get, sendAll } from './requests.ts';

export async function serveForOthers(bench: Bench, until: Promise<unknown>): Promise<void> {
  const { store, key } = await openShop(bench);
  const server = await store.serve();
  const path = `/v1/pets?limit=${PAGE}`;
  const replies = await sendAll(server.origin, [get(path, key)]);
  const bare = await bench.start(PEERS.bare.name, peerCommand(PEERS.bare, [bench.jsonFile('replies', replies)]));
  const what = `-H 'Authorization: Bearer ${key}' '${server.origin}${path}'`;
  const wrk = pinned(bench.cores?.load, ['wrk', '-t1', `-c${CONNECTIONS}`, '-d10s', '--latency']).join(' ');
  const onCore = bench.cores ? `, on core ${bench.cores.server} alone` : '';
  console.log(`petstore with ${number(ANIMALS)} animals listens, and so does ${PEERS.bare.name}, which answers every GET with the bytes of this list:
  ${server.origin}   petstore (process ${server.pid}${onCore})
  ${bare.origin}   ${PEERS.bare.name} (process ${bare.pid}${onCore})
The key has no limits. Type one of these in another terminal, or give another tool this header and this address; for
${PEERS.bare.name}, replace the port.

curl -i ${what}
${wrk} ${what}

^C ends both.`);
  await until;
}
