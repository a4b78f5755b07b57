/** A million animals beside a thousand: pages, start, memory, compaction; and the start of the single binary. */
import { deepStrictEqual } from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Bench } from './bench.ts';
import { contest } from './contest.ts';
import { pinned, residentMb } from './machine.ts';
import { ratios, spread } from './numbers.ts';
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
const MIXED_SECONDS = 20;
const MIXED_PER_SECOND = 500;
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
  await empty.server.stop();
  const small = await open(bench, SMALL);
  const large = await open(bench, LARGE);
  const memory = spread([large.memoryMb - empty.memoryMb]);
  bench.figure('memory with 1,000,000 animals', 'an empty server', memory, 'MB');
  await compare(bench, 'first page', () => '', large, small);
  await compare(bench, 'deep page', ({ count }) => `&after=${count - 2 * PAGE}`, large, small);
  await compare(bench, 'rare status', () => '&status=sold', large, small);
  await small.server.stop();
  await measureCompaction(bench, large);
  await measureStarts(bench, large);
  await bench.stopServers();
  await measureBinary(bench);
}

async function open(bench: Bench, count: number): Promise<Shop> {
  bench.progress(`scale: a store with ${count.toLocaleString('en')} animals`);
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

async function compare(bench: Bench, kind: string, queryOf: (shop: Shop) => string, large: Shop, small: Shop) {
  const subjects = [large, small].map((shop) => {
    const file = bench.jsonFile('requests', [get(`/v1/pets?limit=${PAGE}${queryOf(shop)}`, shop.key)]);
    return { name: shop === large ? SERVICE : 'the same at 1,000', server: shop.server, file };
  });
  const path = `list at 1,000,000 animals, ${kind}`;
  await contest(bench, { part: 'scale', path, connections: CONNECTIONS }, subjects);
}

/** The longest reply of the same mixed load, without a compaction and with one. */
async function measureCompaction(bench: Bench, { store, server, key }: Shop): Promise<void> {
  const requests = Array.from({ length: 1_000 }, (_, i) => {
    if (i % 10 === 0) return post('/v1/pets', key, { name: `Rex ${i}`, categoryId: (i % 9) + 1 });
    return get(i % 3 === 0 ? `/v1/pets/${i}` : `/v1/pets?limit=${i % 2 === 0 ? 20 : 50}`, key);
  });
  const rate = { perSecond: MIXED_PER_SECOND, seconds: MIXED_SECONDS, connections: CONNECTIONS };
  const file = bench.jsonFile('requests', requests);
  const longest = async () => {
    const { latency } = await bench.load(server, { file, ...rate });
    return latency!.max;
  };
  const compact = async () => {
    await new Promise((resolve) => setTimeout(resolve, COMPACTION_BEGINS_AFTER_MS));
    const began = performance.now();
    await store.command('compact');
    return (performance.now() - began) / 1_000;
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
  const [nothing, service]: number[][] = [[], []];
  for (let n = 1; n <= 2 * STARTS; n++) {
    bench.progress(`scale: start of the binary, ${n} of ${2 * STARTS}`);
    const node = pinned(bench.cores?.server, [process.execPath, '-e', '0']);
    nothing.push(await secondsOf(() => run(node, COMMAND_MAX_MS)));
    const store = new Store(bench);
    service.push(
      await secondsOf(async () => {
        const { origin } = await store.serve([BINARY]);
        await send(origin, { method: 'GET', path: '/readyz', headers: {}, status: 200 });
      }),
    );
    await bench.stopServers();
  }
  const path = 'single binary, start to first 200';
  bench.figure(path, 'node -e 0', ratios(service, nothing), '×');
  bench.figure(path, '', spread(service), 's');
}

async function secondsOf(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return (performance.now() - began) / 1_000;
}
