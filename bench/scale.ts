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
import { animals, bundled, SERVICE, Store } from './service.ts';

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
  if (!Number.isNaN(empty.memoryMb)) {
    const value = spread([large.memoryMb - empty.memoryMb]);
    const name = { path: 'memory with 1,000,000 animals', against: 'an empty server' };
    bench.results.figures.push({ part: 'scale', ...name, value, unit: 'MB' });
  }
  const kinds = { 'first page': '', 'deep page': `&after=${SMALL / 2}`, 'rare status': '&status=sold' };
  for (const [kind, query] of Object.entries(kinds)) await compare(bench, kind, query, large, small);
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
  const file = bench.requestFile([request]);
  await bench.load({ origin: server.origin, pid: server.pid, file, connections: CONNECTIONS, seconds: 2 });
  return { count, server, store, key, memoryMb: residentMb(server.pid) ?? Number.NaN };
}

/** The deep page of the large store lies deep in it, not where the small one ends. */
async function compare(bench: Bench, kind: string, query: string, large: Shop, small: Shop): Promise<void> {
  const subjects = [large, small].map(({ server, key, count }) => {
    const deep = query.replace(`after=${SMALL / 2}`, `after=${count - 2 * PAGE}`);
    const file = bench.requestFile([get(`/v1/pets?limit=${PAGE}${deep}`, key)]);
    return { name: count === LARGE ? SERVICE : 'the same at 1,000', server, file };
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
  const load = { origin: server.origin, pid: server.pid, file: bench.requestFile(requests), connections: CONNECTIONS };
  const longest = async () => {
    const { latency } = await bench.load({ ...load, perSecond: MIXED_PER_SECOND, seconds: MIXED_SECONDS });
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
  const name = { path: 'longest reply in a compaction of 1,000,000', against: 'without one' };
  bench.results.figures.push(
    { part: 'scale', ...name, value: spread([during - without]), unit: 'ms' },
    { part: 'scale', path: 'a compaction of 1,000,000 animals under load', value: spread([took]), unit: 's' },
  );
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
  const name = { path: 'start on 1,000,000 animals', against: 'cat of the file' };
  bench.results.figures.push({ part: 'scale', ...name, value: spread(more), unit: 's' });
}

/** From nothing to the first 200, beside the least that a Node program takes. */
async function measureBinary(bench: Bench): Promise<void> {
  const isBuilt = existsSync(BINARY);
  if (!isBuilt) bench.note('scale: dist/petstore is not built (npm run build), so the bundled file was started.');
  const program = isBuilt ? [BINARY] : [process.execPath, await bundled(bench)];
  const [nothing, service]: number[][] = [[], []];
  for (let n = 1; n <= 2 * STARTS; n++) {
    bench.progress(`scale: start of the binary, ${n} of ${2 * STARTS}`);
    const node = pinned(bench.cores?.server, [process.execPath, '-e', '0']);
    nothing.push(await secondsOf(() => run(node, COMMAND_MAX_MS)));
    const store = new Store(bench);
    service.push(
      await secondsOf(async () => {
        const { origin } = await store.serve(program);
        await send(origin, { method: 'GET', path: '/readyz', headers: {}, status: 200 });
      }),
    );
    await bench.stopServers();
  }
  const path = isBuilt ? 'single binary, start to first 200' : 'bundled file, start to first 200';
  bench.results.figures.push(
    { part: 'scale', path, against: 'node -e 0', value: ratios(service, nothing), unit: '×' },
    { part: 'scale', path, value: spread(service), unit: 's' },
  );
}

async function secondsOf(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return (performance.now() - began) / 1_000;
}
