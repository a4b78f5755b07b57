/** A million animals beside a thousand, and beside none: pages, start, memory. */
import { deepStrictEqual } from 'node:assert/strict';
import type { Bench } from './bench.ts';
import { contest } from './contest.ts';
import { residentMb } from './machine.ts';
import { number } from './numbers.ts';
import { CONNECTIONS, PAGE } from './paths.ts';
import type { Server } from './processes.ts';
import { get, send } from './requests.ts';
import { animals, SERVICE, Store } from './service.ts';

const SMALL = 1_000;
const LARGE = 1_000_000;

interface Shop {
  server: Server;
  key: string;
  startSeconds: number;
  memoryMb: number;
}

export async function measureScale(bench: Bench): Promise<void> {
  const empty = await open(bench, 0);
  const small = await open(bench, SMALL);
  const large = await open(bench, LARGE);
  const more = { path: `start on ${number(LARGE)} animals`, against: 'an empty store' };
  bench.results.figures.push(
    { ...more, more: large.startSeconds - empty.startSeconds, unit: 's' },
    { ...more, path: `memory with ${number(LARGE)} animals`, more: large.memoryMb - empty.memoryMb, unit: 'MB' },
  );
  for (const [kind, query] of Object.entries({
    'first page': () => '',
    'deep page': (count: number) => `&after=${count - 2 * PAGE}`,
    'rare status': () => '&status=sold',
  })) {
    const requests = ({ key }: Shop, count: number) => {
      return bench.jsonFile('requests', [get(`/v1/pets?limit=${PAGE}${query(count)}`, key)]);
    };
    await contest(bench, { path: `list at ${number(LARGE)} animals, ${kind}`, connections: CONNECTIONS }, [
      { name: SERVICE, server: large.server, file: requests(large, LARGE) },
      { name: `the same at ${number(SMALL)}`, server: small.server, file: requests(small, SMALL) },
    ]);
  }
  await bench.stopServers();
}

async function open(bench: Bench, count: number): Promise<Shop> {
  bench.progress(`scale: a store with ${number(count)} animals`);
  const store = new Store(bench);
  const key = await store.key();
  if (count > 0) await store.fill(count);
  const began = performance.now();
  const server = await store.serve();
  const startSeconds = (performance.now() - began) / 1_000;
  const request = get(`/v1/pets?limit=${PAGE}`, key);
  const { body } = await send(server.origin, request);
  deepStrictEqual(JSON.parse(body), animals(Math.min(PAGE, count)));
  // Memory is compared after the same load, because a server that has just started has not yet used what it will.
  await bench.load(server, { file: bench.jsonFile('requests', [request]), connections: CONNECTIONS, seconds: 2 });
  return { server, key, startSeconds, memoryMb: residentMb(server.pid) };
}
