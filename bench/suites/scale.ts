/** Growth: 1,000 to 1,000,000 animals in pages, memory and starting. */
import { deepStrictEqual } from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { animals } from '../animals.ts';
import type { Bench } from '../bench.ts';
import { contest, reachRatio, type Subject } from '../contest.ts';
import type { Call } from '../load.ts';
import { load } from '../loader.ts';
import { pinned } from '../machine.ts';
import { residentMb, spread } from '../measure.ts';
import { mustAnswer } from '../replies.ts';
import { run } from '../run.ts';
import type { Server } from '../servers.ts';
import { Store } from '../service.ts';
import { get } from '../subjects.ts';
import { compaction } from './scale/compaction.ts';
import { manyConnections, manyKeys } from './scale/crowd.ts';

const SMALL = 1_000;
const SIZES = [SMALL, 10_000, 100_000, 1_000_000];
const LARGE = 1_000_000;
const PAGE = 20;
const CONNECTIONS = 32;
const STARTS = 3;
const CAT_MAX_MS = 60_000;
const RANDOM_PAGES = 1_000;

/** So that the rare status fills a page everywhere, and stays rare: 40 of 1,000, 100 of 1,000,000. */
const rareEvery = (count: number) => Math.max(25, count / 100);

interface Shop {
  count: number;
  server: Server;
  store: Store;
  key: string;
  memoryMb: number;
}

type PageKind = 'first page' | 'deep page' | 'rare status' | 'random pages';

export async function scale(bench: Bench): Promise<void> {
  const empty = await open(bench, 0);
  await empty.server.stop();
  const shops: Shop[] = [];
  for (const count of SIZES) {
    const shop = await open(bench, count);
    const startSeconds = count === LARGE ? await startBesideCat(bench, shop) : shop.server.startMs / 1000;
    await grow(bench, shop, startSeconds);
    if (count === SMALL || count === LARGE) shops.push(shop);
    else await shop.server.stop();
  }
  const [small, large] = shops;
  bench.reach('scale-memory', spread([large.memoryMb - empty.memoryMb]));
  bench.figure('scale', 'memory of an empty server', `${empty.memoryMb.toFixed(0)} MB`);

  await compare(bench, 'first page', large, small, 'scale-first');
  await compare(bench, 'deep page', large, small, 'scale-deep');
  await compare(bench, 'rare status', large, small, 'scale-rare');
  await small.server.stop();
  await manyConnections(bench, large.server, large.key);
  await compaction(bench, large.store, large.server, large.key);
  await large.server.stop();
  await manyKeys(bench, empty.memoryMb);
}

async function open(bench: Bench, count: number): Promise<Shop> {
  const store = new Store(bench);
  const key = await store.key();
  if (count > 0) {
    bench.progress(`scale: filling a store with ${count.toLocaleString('en')} animals`);
    await store.fill(count, rareEvery(count));
  }
  bench.progress(`scale: starting on ${count.toLocaleString('en')} animals`);
  const server = await store.serve();
  const shop: Shop = { count, server, store, key, memoryMb: 0 };
  const [call] = pages('first page', shop);
  const expected = animals(Math.min(PAGE, count), rareEvery(count));
  await mustAnswer(server.origin, call, (value) => deepStrictEqual(value, expected));
  // A server that has just started has not yet used what it will: memory is compared after the same load.
  await load(bench, { origin: server.origin, calls: [call], connections: CONNECTIONS, seconds: bench.seconds });
  shop.memoryMb = residentMb(server.pid);
  return shop;
}

/** Restarts the server a few times; leaves it running. Returns the median of the starts. */
async function startBesideCat(bench: Bench, shop: Shop): Promise<number> {
  const [starts, more]: number[][] = [[], []];
  for (let i = 0; i < STARTS; i++) {
    bench.progress(`scale: start ${i + 1} of ${STARTS} on ${shop.count.toLocaleString('en')} animals`);
    await shop.server.stop();
    const read = await catSeconds(bench, shop.store.data);
    shop.server = await shop.store.serve();
    starts.push(shop.server.startMs / 1000);
    more.push(shop.server.startMs / 1000 - read);
  }
  bench.reach('scale-start', spread(more));
  return spread(starts).median;
}

async function catSeconds(bench: Bench, folder: string): Promise<number> {
  const files = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isFile());
  const paths = files.map((entry) => path.join(folder, entry.name));
  const began = performance.now();
  const intoNothing = ['sh', '-c', 'cat "$@" > /dev/null', 'cat', ...paths];
  await run(pinned(bench.cores?.server, intoNothing), { timeoutMs: CAT_MAX_MS });
  return (performance.now() - began) / 1000;
}

function pages(kind: PageKind, { count, key }: Pick<Shop, 'count' | 'key'>): Call[] {
  const after = (id: number) => get(`/v1/pets?limit=${PAGE}&after=${id}`, key);
  if (kind === 'first page') return [get(`/v1/pets?limit=${PAGE}`, key)];
  if (kind === 'deep page') return [after(count - 2 * PAGE)];
  if (kind === 'rare status') return [get(`/v1/pets?limit=${PAGE}&status=sold`, key)];
  const spacing = (count - PAGE) / RANDOM_PAGES;
  const ids = Array.from({ length: RANDOM_PAGES }, (_, i) => Math.floor(((i * 389) % RANDOM_PAGES) * spacing));
  return ids.map(after);
}

async function compare(bench: Bench, kind: PageKind, large: Shop, small: Shop, aim: PageAim): Promise<void> {
  const subjects: Subject[] = [large, small].map((shop) => ({
    server: shop.server,
    calls: pages(kind, shop),
    name: `${kind}, ${shop.count.toLocaleString('en')}`,
  }));
  for (const { server, calls } of subjects) {
    await mustAnswer(server.origin, calls[0], (value) => deepStrictEqual((value as unknown[]).length, PAGE));
  }
  const measured = await contest(bench, 'scale', CONNECTIONS, subjects);
  reachRatio(bench, aim, measured, subjects[0].name!, subjects[1].name!);
}

type PageAim = 'scale-first' | 'scale-deep' | 'scale-rare';

/** One point of the growth chart. */
async function grow(bench: Bench, shop: Shop, startSeconds: number): Promise<void> {
  const perSecond = async (kind: PageKind) => {
    bench.progress(`scale: ${kind} of ${shop.count.toLocaleString('en')} animals`);
    const order = { origin: shop.server.origin, calls: pages(kind, shop), connections: CONNECTIONS };
    const { requests, seconds } = await load(bench, { ...order, seconds: bench.seconds });
    return requests / seconds;
  };
  bench.results.growth.push({
    animals: shop.count,
    firstPerSecond: await perSecond('first page'),
    randomPerSecond: await perSecond('random pages'),
    rarePerSecond: await perSecond('rare status'),
    memoryMb: shop.memoryMb,
    startSeconds,
  });
}
