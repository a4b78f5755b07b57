/** Growth: 1,000 to 1,000,000 animals in pages, memory and starting; and what a compaction does to who is served. */
import { deepStrictEqual } from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import path from 'node:path';
import type { AimId } from '../aims.ts';
import { animals } from '../animals.ts';
import { type Call, get, mustAnswer, post } from '../ask.ts';
import type { Bench } from '../bench.ts';
import { contest, reachRatio } from '../contest.ts';
import { saturate, sendPaced } from '../load.ts';
import { pinned } from '../machine.ts';
import { residentMb, spread } from '../measure.ts';
import { run } from '../run.ts';
import type { Server } from '../servers.ts';
import { Store } from '../service.ts';

const SMALL = 1_000;
const LARGE = 1_000_000;
const SIZES = [SMALL, 10_000, 100_000, LARGE];
const PAGE = 20;
const CONNECTIONS = 32;
const STARTS = 3;
const CAT_MAX_MS = 60_000;
const MIXED_PER_SECOND = 1_000;
const MIXED_SECONDS = 5;
const COMPACTION_BEGINS_AFTER_MS = 1_000;

/** So that the rare status fills a page everywhere, and stays rare: 40 of 1,000, 100 of 1,000,000. */
const rareEvery = (count: number) => Math.max(25, count / 100);

interface Shop {
  count: number;
  server: Server;
  store: Store;
  key: string;
  memoryMb: number;
}

type PageKind = 'first page' | 'deep page' | 'rare status';

export async function scale(bench: Bench): Promise<void> {
  const empty = await open(bench, 0);
  await empty.server.stop();
  const shops: Shop[] = [];
  for (const count of SIZES) {
    const shop = await open(bench, count);
    await grow(bench, shop, count === LARGE ? await startBesideCat(bench, shop) : shop.server.startMs / 1000);
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
  await compaction(bench, large);
}

async function open(bench: Bench, count: number): Promise<Shop> {
  const store = new Store(bench);
  const key = await store.key();
  bench.progress(`scale: filling a store with ${count.toLocaleString('en')} animals, and starting on it`);
  if (count > 0) await store.fill(count, rareEvery(count));
  const server = await store.serve();
  const shop: Shop = { count, server, store, key, memoryMb: 0 };
  const [call] = pages('first page', shop);
  const expected = animals(Math.min(PAGE, count), rareEvery(count));
  await mustAnswer(server.origin, call, (value) => deepStrictEqual(value, expected));
  // A server that has just started has not yet used what it will: memory is compared after the same load.
  await saturate(bench, { origin: server.origin, calls: [call], connections: CONNECTIONS, seconds: bench.seconds });
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

function pages(kind: PageKind, { count, key }: Shop): Call[] {
  const more = { 'first page': '', 'deep page': `&after=${count - 2 * PAGE}`, 'rare status': '&status=sold' };
  return [get(`/v1/pets?limit=${PAGE}${more[kind]}`, key)];
}

async function compare(bench: Bench, kind: PageKind, large: Shop, small: Shop, aim: AimId): Promise<void> {
  const subjects = [large, small].map((shop) => {
    return { server: shop.server, calls: pages(kind, shop), name: `${kind}, ${shop.count.toLocaleString('en')}` };
  });
  for (const { server, calls } of subjects) {
    await mustAnswer(server.origin, calls[0], (value) => deepStrictEqual((value as unknown[]).length, PAGE));
  }
  const measured = await contest(bench, 'scale', CONNECTIONS, subjects);
  reachRatio(bench, aim, measured, [subjects[0].name, subjects[1].name]);
}

/** One point of the growth plots. */
async function grow(bench: Bench, shop: Shop, startSeconds: number): Promise<void> {
  const perSecond = async (kind: PageKind) => {
    const order = { origin: shop.server.origin, calls: pages(kind, shop), connections: CONNECTIONS };
    const { requests, seconds } = await saturate(bench, { ...order, seconds: bench.seconds });
    return requests / seconds;
  };
  const rates = { firstPerSecond: await perSecond('first page'), rarePerSecond: await perSecond('rare status') };
  bench.results.growth.push({ animals: shop.count, ...rates, memoryMb: shop.memoryMb, startSeconds });
}

/** The longest reply of the same mixed load with and without one; the load outlasts it. */
async function compaction(bench: Bench, { store, server, key }: Shop): Promise<void> {
  const calls = Array.from({ length: 1_000 }, (_, i) => {
    if (i % 10 === 0) return post('/v1/pets', key, { name: `Rex ${i}`, categoryId: i % 9 });
    return get(i % 3 === 0 ? `/v1/pets/${i}` : `/v1/pets?limit=${i % 2 === 0 ? 20 : 50}`, key);
  });
  const order = { origin: server.origin, calls, connections: CONNECTIONS, perSecond: MIXED_PER_SECOND };
  const longest = async () => (await sendPaced(bench, { ...order, seconds: MIXED_SECONDS })).latency.max;
  await sendPaced(bench, { ...order, seconds: 2 });
  bench.progress('scale: mixed load, no compaction');
  const without = await longest();
  bench.progress('scale: mixed load during a compaction');
  const compacting = new Promise<number>((resolve, reject) => {
    const compact = async () => {
      const began = performance.now();
      await store.command('compact');
      return (performance.now() - began) / 1000;
    };
    setTimeout(() => compact().then(resolve, reject), COMPACTION_BEGINS_AFTER_MS);
  });
  const [during, took] = await Promise.all([longest(), compacting]);
  if (took * 1000 + COMPACTION_BEGINS_AFTER_MS > MIXED_SECONDS * 1000) {
    bench.note(`scale: the compaction took ${took.toFixed(1)} s, longer than the load beside it.`);
  }
  bench.reach('scale-compaction', spread([during - without]));
  const longestReplies = `${without.toFixed(1)} ms without, ${during.toFixed(1)} ms with; it took ${took.toFixed(1)} s`;
  bench.figure('scale', 'longest reply beside a compaction', longestReplies);
}
