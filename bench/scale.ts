/** A million animals beside a thousand: pages, start, memory, compaction; and the start of the single binary. */
import { deepStrictEqual } from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Bench } from './bench.ts';
import { contest } from './contest.ts';
import { pinned, residentMb } from './machine.ts';
import { number, spread } from './numbers.ts';
import { run, type Server } from './processes.ts';
import { get, post, send } from './requests.ts';
import { animals, SERVICE, Store } from './service.ts';

const SMALL = 1_000;
const LARGE = 1_000_000;
const PAGE = 20;
const CONNECTIONS = 32;
const STARTS = 5;
const COMMAND_MAX_MS = 60_000;
/** Lasts longer than a compaction of a million. */
const MIXED = { perSecond: 500, seconds: 20 };
const COMPACTION_BEGINS_AFTER_MS = 2_000;
const BINARY = fileURLToPath(new URL('../dist/petstore', import.meta.url));

interface Shop {
  count: number;
  server: Server;
  store: Store;
  key: string;
  memoryMb: number;
}

export async function measureScale(bench: Bench): Promise<void> {
  const empty = await open(bench, 0);
  const small = await open(bench, SMALL);
  const large = await open(bench, LARGE);
  bench.figure('memory with 1,000,000 animals', 'an empty server', spread([large.memoryMb - empty.memoryMb]), 'MB');
  for (const [kind, query] of Object.entries({
    'first page': () => '',
    'deep page': ({ count }: Shop) => `&after=${count - 2 * PAGE}`,
    'rare status': () => '&status=sold',
  })) {
    const subjects = [large, small].map((shop) => {
      const file = bench.jsonFile('requests', [get(`/v1/pets?limit=${PAGE}${query(shop)}`, shop.key)]);
      return { name: shop === large ? SERVICE : 'the same at 1,000', server: shop.server, file };
    });
    const path = `list at 1,000,000 animals, ${kind}`;
    await contest(bench, { part: 'scale', path, connections: CONNECTIONS }, subjects);
  }
  await measureCompaction(bench, large);
  await measureStarts(bench, large);
  await bench.stopServers();
  await measureBinary(bench);
}

async function open(bench: Bench, count: number): Promise<Shop> {
  bench.progress(`scale: a store with ${number(count)} animals`);
  const store = new Store(bench);
  const key = await store.key();
  if (count > 0) await store.fill(count);
  const server = await store.serve();
  const request = get(`/v1/pets?limit=${PAGE}`, key);
  const { body } = await send(server.origin, request);
  deepStrictEqual(JSON.parse(body), animals(Math.min(PAGE, count)));
  // Memory is compared after the same load, because a server that has just started has not yet used what it will.
  await bench.load(server, { file: bench.jsonFile('requests', [request]), connections: CONNECTIONS, seconds: 2 });
  return { count, server, store, key, memoryMb: residentMb(server.pid) };
}

/** The longest reply of the same mixed load, without a compaction and with one. */
async function measureCompaction(bench: Bench, { store, server, key }: Shop): Promise<void> {
  const requests = Array.from({ length: 1_000 }, (_, i) => {
    if (i % 10 === 0) return post('/v1/pets', key, { name: `Rex ${i}`, categoryId: (i % 9) + 1 });
    return get(i % 3 === 0 ? `/v1/pets/${i}` : `/v1/pets?limit=${i % 2 === 0 ? 20 : 50}`, key);
  });
  const load = { file: bench.jsonFile('requests', requests), connections: CONNECTIONS, ...MIXED };
  const longest = async () => (await bench.load(server, load)).latency!.max;
  const compact = async () => {
    await new Promise((resolve) => setTimeout(resolve, COMPACTION_BEGINS_AFTER_MS));
    return secondsOf(() => store.command('compact'));
  };
  bench.progress('scale: mixed load, without a compaction and with one');
  const without = await longest();
  const [during, took] = await Promise.all([longest(), compact()]);
  bench.figure('longest reply in a compaction of 1,000,000', 'without one', spread([during - without]), 'ms');
  bench.figure('a compaction of 1,000,000 animals under load', '', spread([took]), 's');
}

/** From the start of the program to its first line, less what `cat` takes for the same files. */
async function measureStarts(bench: Bench, { server, store }: Shop): Promise<void> {
  let running = server;
  const more: number[] = [];
  for (let n = 1; n <= STARTS; n++) {
    bench.progress(`scale: start ${n} of ${STARTS}`);
    await running.stop();
    const entries = readdirSync(store.data, { withFileTypes: true }).filter((entry) => entry.isFile());
    const files = entries.map((entry) => path.join(store.data, entry.name));
    const cat = pinned(bench.cores?.server, ['sh', '-c', 'cat "$@" > /dev/null', 'cat', ...files]);
    const read = await secondsOf(() => run(cat, COMMAND_MAX_MS));
    const start = await secondsOf(async () => {
      running = await store.serve();
    });
    more.push(start - read);
  }
  bench.figure('start on 1,000,000 animals', 'cat of the file', spread(more), 's');
}

/** From nothing to the first 200, beside the least that a Node program takes. */
async function measureBinary(bench: Bench): Promise<void> {
  if (!existsSync(BINARY)) return bench.note('The single binary is left out: npm run build makes it.');
  const node = pinned(bench.cores?.server, [process.execPath, '-e', '0']);
  const startService = () => {
    return secondsOf(async () => {
      const { origin } = await new Store(bench).serve([BINARY]);
      await send(origin, { method: 'GET', path: '/readyz', headers: {}, status: 200 });
    });
  };
  const service: number[] = [];
  const times: number[] = [];
  for (let n = 1; n <= 2 * STARTS; n++) {
    bench.progress(`scale: start of the binary, ${n} of ${2 * STARTS}`);
    service.push(await startService());
    await bench.stopServers();
    times.push(service[n - 1] / (await secondsOf(() => run(node, COMMAND_MAX_MS))));
  }
  bench.figure('single binary, start to first 200', 'node -e 0', spread(times), '×');
  bench.figure('single binary, start to first 200', '', spread(service), 's');
}

async function secondsOf(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return (performance.now() - began) / 1_000;
}
