/**
 * Two threads beside one, each path at 64, 256 and 1,000 connections. Neither is pinned to a core, and the load takes its
 * share: on two cores, two threads have little more than one. For a machine with cores to spare: bench/threads.mjs.
 */
import { get, mustAnswer, post } from '../ask.ts';
import type { Bench } from '../bench.ts';
import { contest, reachCpu, reachRatio, type Subject } from '../contest.ts';
import { SERVICE, Store } from '../service.ts';
import { ANIMALS, RARE_EVERY } from '../subjects.ts';

const CONNECTIONS = [64, 256, 1_000];
const TWO = `${SERVICE}, two threads`;

export async function threads(bench: Bench): Promise<void> {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (process.platform !== 'linux' || major < 22 || (major === 22 && minor < 12)) {
    return bench.miss('threads', 'it needs Linux and Node 22.12');
  }
  const servers = [];
  for (const [name, count] of [
    [TWO, 2],
    [SERVICE, 1],
  ] as const) {
    const store = new Store(bench);
    await store.fill(ANIMALS, RARE_EVERY);
    const keys = { rich: await store.key(), poor: await store.key(1) };
    const server = await store.serve(undefined, ['--threads', String(count)]);
    await mustAnswer(server.origin, get('/v1/pets?limit=20', keys.poor));
    servers.push({ name, server, keys });
  }
  const calls = {
    list: ({ rich }: { rich: string }) => get('/v1/pets?limit=20', rich),
    429: ({ poor }: { poor: string }) => get('/v1/pets?limit=20', poor, 429),
    get: ({ rich }: { rich: string }) => get('/v1/pets/7', rich),
    create: ({ rich }: { rich: string }) => post('/v1/pets', rich, { name: 'Rex', categoryId: 1 }),
  };
  for (const [path, call] of Object.entries(calls)) {
    const subjects: Subject[] = servers.map(({ name, server, keys }) => ({ name, server, calls: [call(keys)] }));
    for (const connections of CONNECTIONS) {
      const measured = await contest(bench, `threads, ${path}`, connections, subjects);
      if (connections !== CONNECTIONS[0]) continue;
      const row = path === 'list' ? 'threads-list' : path === '429' ? 'threads-limit' : undefined;
      if (row === undefined) continue;
      reachRatio(bench, row, measured, [TWO, SERVICE]);
      reachCpu(bench, `${row}-cpu`, measured, [TWO, SERVICE]);
    }
  }
  bench.miss('threads', 'node bench/threads.mjs measures it, on a machine that has them');
}
