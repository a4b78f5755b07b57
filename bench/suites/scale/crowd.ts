/** Many connections, and many keys. */
import type { Bench } from '../../bench.ts';
import { contest } from '../../contest.ts';
import { residentMb } from '../../measure.ts';
import { mustAnswer } from '../../replies.ts';
import type { Server } from '../../servers.ts';
import { Store } from '../../service.ts';
import { get } from '../../subjects.ts';
import { addKeys } from './keys.ts';

const MANY_CONNECTIONS = 1_000;
const MANY_KEYS = 100_000;
/** How many of them ask: each key's headers must be in the load's file. */
const ASKING_KEYS = 5_000;

export async function manyConnections(bench: Bench, server: Server, key: string): Promise<void> {
  const before = residentMb(server.pid);
  const calls = [get('/v1/pets?limit=20', key)];
  await contest(bench, 'scale', MANY_CONNECTIONS, [{ server, calls, name: 'first page, 1,000 connections' }]);
  const more = residentMb(server.pid) - before;
  bench.figure('scale', 'memory for 1,000 connections under load', `${more < 0 ? '' : '+'}${more.toFixed(0)} MB`);
}

export async function manyKeys(bench: Bench, emptyMb: number): Promise<void> {
  bench.progress(`scale: making ${MANY_KEYS.toLocaleString('en')} keys`);
  const store = new Store(bench);
  const keys = await addKeys(store.data, MANY_KEYS);
  const server = await store.serve();
  const asking = keys.filter((_, i) => i % (MANY_KEYS / ASKING_KEYS) === 0);
  const calls = asking.map((key) => get('/v1/pets?limit=20', key));
  await mustAnswer(server.origin, calls[0]);
  await contest(bench, 'scale', 32, [
    { server, calls, name: `empty list, ${ASKING_KEYS.toLocaleString('en')} keys in turn` },
  ]);
  bench.figure('scale', 'start with 100,000 keys', `${(server.startMs / 1000).toFixed(2)} s`);
  bench.figure('scale', 'memory with 100,000 keys', `+${(residentMb(server.pid) - emptyMb).toFixed(0)} MB`);
  await server.stop();
}
