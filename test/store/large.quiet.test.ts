/** A million animals and a hundred thousand orders: what it costs in time, memory, and pauses of the event loop. */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { openStore } from '../../src/store/file/open.ts';
import type { Extent } from '../../src/store/file/rewrite.ts';
import type { MemoryStore } from '../../src/store/memory.ts';
import type { PetStatus } from '../../src/store/model.ts';

const ANIMALS = 1_000_000;
const ORDERS = 100_000;
const PART = 1_000;
const PAUSE_MAX_MS = 20;
const START_MAX_MS = 1_000;
const MEMORY_MAX_BYTES = 250e6;

/**
 * The longest time between two turns of the event loop in which this process worked, in ms of its processor time: what a
 * busy machine adds does not count.
 */
async function pauseDuring(work: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let isOver = false;
  let [now, cpu] = [performance.now(), process.cpuUsage()];
  const turn = () => {
    const { user, system } = process.cpuUsage(cpu);
    longest = Math.max(longest, Math.min(performance.now() - now, (user + system) / 1000));
    [now, cpu] = [performance.now(), process.cpuUsage()];
    if (!isOver) setImmediate(turn);
  };
  turn();
  await work();
  isOver = true;
  await new Promise((resolve) => setImmediate(resolve));
  return longest;
}

function compactElsewhere(dir: string, extent: Extent): Promise<void> {
  const source = (name: string) => JSON.stringify(join(import.meta.dirname, '../../src/store/file', name));
  const both = `Promise.all([import(${source('rewrite.ts')}), import(${source('disk.ts')})])`;
  const work = `compactFile(realDisk, ${JSON.stringify(dir)}, ${JSON.stringify(extent)})`;
  const code = `${both}.then(([{ compactFile }, { realDisk }]) => ${work})`;
  const child = spawn(process.execPath, [...process.execArgv, '-e', code], { stdio: 'inherit' });
  return new Promise((resolve, reject) => {
    child.on('exit', (status) => (status === 0 ? resolve() : reject(new Error(`ended with ${status}`))));
  });
}

/** In a process of its own: one that has held all of it before has its memory already. */
function openElsewhere(dir: string): { startMs: number; memoryBytes: number; counts: object } {
  const code = `import(${JSON.stringify(join(import.meta.dirname, '../../src/store/file/open.ts'))}).then(async (m) => {
    const before = process.memoryUsage.rss();
    const began = performance.now();
    const { store } = await m.openStore(${JSON.stringify(dir)});
    const startMs = performance.now() - began;
    const memoryBytes = process.memoryUsage.rss() - before;
    store.read.check();
    console.log(JSON.stringify({ startMs, memoryBytes, counts: store.read.counts() }));
    await store.close();
  });`;
  return JSON.parse(execFileSync(process.execPath, [...process.execArgv, '-e', code], { encoding: 'utf8' }));
}

async function importAnimals(store: MemoryStore): Promise<void> {
  const status = (i: number): PetStatus => (i % 100_000 === 5 ? 'sold' : 'available');
  for (let i = 0; i < ANIMALS; i += PART) {
    const row = (_: unknown, k: number) => ({
      name: `Animal ${i + k}`,
      categoryId: (i + k) % 50,
      status: status(i + k),
    });
    const once = { caller: 'import', key: `all:${i}`, at: store.unix() };
    const pets = Array.from({ length: PART }, row);
    await store.write((ahead) => ({ op: 'addPets', first: ahead.counters.nextPetId, pets, once }));
  }
}

async function placeOrders(store: MemoryStore): Promise<void> {
  for (let i = 0; i < ORDERS; i += 100) {
    const place = (_: unknown, k: number) =>
      store.write((ahead) => ({
        op: 'placeOrder',
        order: {
          id: ahead.counters.nextOrderId,
          petId: (i + k) * 2 + 1,
          status: 'placed',
          placedAt: 1_767_225_600_000,
        },
      }));
    await Promise.all(Array.from({ length: 100 }, place));
  }
}

function pageMs(store: MemoryStore, after: number, status?: PetStatus): number {
  const began = performance.now();
  for (let i = 0; i < 20_000; i++) store.read.pets.page(after, 20, status);
  return (performance.now() - began) / 20_000;
}

test('a million animals: pauses, start, memory', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'petstore-large-'));
  const pauses: Record<string, number> = {};
  try {
    const { store, journal } = await openStore(dir, { compact: compactElsewhere });
    pauses.import = await pauseDuring(() => importAnimals(store));
    await sleep(100);
    pauses.orders = await pauseDuring(() => placeOrders(store));
    pauses.compaction = await pauseDuring(() => journal.compact());
    for (const [after, status] of [[0], [900_000], [0, 'sold']] as [number, PetStatus?][]) {
      t.diagnostic(`page after ${after} ${status ?? ''}: ${(pageMs(store, after, status) * 1000).toFixed(2)} µs`);
    }
    await store.close();

    const bytes = readdirSync(dir).map((name) => readFileSync(join(dir, name)).length);
    const { startMs, memoryBytes, counts } = openElsewhere(dir);
    t.diagnostic(`start on ${bytes.reduce((a, b) => a + b)} bytes: ${startMs.toFixed(0)} ms`);
    t.diagnostic(`memory, more than before: ${(memoryBytes / 1e6).toFixed(0)} MB`);
    t.diagnostic(`pauses in ms: ${JSON.stringify(pauses)}`);
    assert.deepEqual(counts, { pets: ANIMALS, orders: ORDERS, categories: 0, keys: 0 });
    assert.ok(startMs < START_MAX_MS, `start took ${startMs} ms`);
    assert.ok(memoryBytes > 0 && memoryBytes < MEMORY_MAX_BYTES, `${memoryBytes} bytes of memory`);
    for (const [what, ms] of Object.entries(pauses)) assert.ok(ms < PAUSE_MAX_MS, `${what}: ${ms} ms`);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});
