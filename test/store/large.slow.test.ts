/** A million animals and a hundred thousand orders: what it costs in time, memory, and pauses of the event loop. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { PetStatus } from '../../src/store/model.ts';
import { FileStore } from '../../src/store/store.ts';

const ANIMALS = 1_000_000;
const ORDERS = 100_000;
const PART = 1_000;
const PAUSE_MAX_MS = 20;
const START_MAX_MS = 1_000;
const MEMORY_MAX_BYTES = 250e6;

/** CPU time of the process, in ms: a turn that only waited for a processor taken by others is no pause of ours. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** The longest time between two turns of the event loop while `work` runs, in ms. */
async function longestPause(work: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let before = performance.now();
  let cpuBefore = cpuMs();
  let isOver = false;
  const turn = () => {
    const now = performance.now();
    const cpu = cpuMs();
    longest = Math.max(longest, Math.min(now - before, cpu - cpuBefore));
    before = now;
    cpuBefore = cpu;
    if (!isOver) setImmediate(turn);
  };
  turn();
  await work();
  isOver = true;
  await new Promise((resolve) => setImmediate(resolve));
  return longest;
}

function compactElsewhere(dir: string, generation: number): Promise<void> {
  const source = join(import.meta.dirname, '../../src/store/compaction.ts');
  const code = `import('${source}').then((m) => m.runCompaction(${JSON.stringify(dir)}, ${generation}))`;
  const child = spawn(process.execPath, [...process.execArgv, '-e', code], { stdio: 'inherit' });
  return new Promise((resolve, reject) => {
    child.on('exit', (status) => (status === 0 ? resolve() : reject(new Error(`ended with ${status}`))));
  });
}

async function importAnimals(store: FileStore): Promise<number> {
  const begin = await store.write((ahead) => ({ op: 'beginImport', first: ahead.nextPetId(), count: ANIMALS }));
  const { first } = begin as { first: number };
  const status = (i: number): PetStatus => (i % 100_000 === 5 ? 'sold' : 'available');
  for (let i = 0; i < ANIMALS; i += PART) {
    const row = (_: unknown, k: number) => ({
      id: first + i + k,
      name: `Animal ${i + k}`,
      categoryId: (i + k) % 50,
      status: status(i + k),
    });
    await store.write(() => ({ op: 'importPart', first, pets: Array.from({ length: PART }, row) }));
  }
  return first;
}

async function placeOrders(store: FileStore): Promise<void> {
  for (let i = 0; i < ORDERS; i += 100) {
    const place = (_: unknown, k: number) =>
      store.write((ahead) => ({
        op: 'placeOrder',
        order: { id: ahead.nextOrderId(), petId: (i + k) * 2 + 1, status: 'placed', placedAt: 1_767_225_600_000 },
      }));
    await Promise.all(Array.from({ length: 100 }, place));
  }
}

function pageMs(store: FileStore, after: number, status?: PetStatus): number {
  const began = performance.now();
  for (let i = 0; i < 20_000; i++) store.read.pets(after, 20, status);
  return (performance.now() - began) / 20_000;
}

test('a million animals: pauses, start, memory', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'petstore-large-'));
  const pauses: Record<string, number> = {};
  try {
    const store = await FileStore.open(dir, { compact: compactElsewhere });
    let first = 0;
    pauses.import = await longestPause(async () => {
      first = await importAnimals(store);
    });
    await sleep(100);
    pauses.show = await longestPause(() => store.write(() => ({ op: 'endImport', first, keep: true })));
    pauses.orders = await longestPause(() => placeOrders(store));
    pauses.compaction = await longestPause(() => store.compact());
    for (const [after, status] of [[0], [900_000], [0, 'sold']] as [number, PetStatus?][]) {
      t.diagnostic(`page after ${after} ${status ?? ''}: ${(pageMs(store, after, status) * 1000).toFixed(2)} µs`);
    }
    await store.close();
    global.gc?.();

    const bytes = readdirSync(dir).map((name) => readFileSync(join(dir, name)).length);
    const before = process.memoryUsage.rss();
    const began = performance.now();
    const again = await FileStore.open(dir);
    const startMs = performance.now() - began;
    t.diagnostic(`start on ${bytes.reduce((a, b) => a + b)} bytes: ${startMs.toFixed(0)} ms`);
    t.diagnostic(`memory, more than before: ${((process.memoryUsage.rss() - before) / 1e6).toFixed(0)} MB`);
    t.diagnostic(`longest pauses in ms: ${JSON.stringify(pauses)}`);
    assert.deepEqual(again.read.counts(), { pets: ANIMALS, orders: ORDERS, categories: 0, keys: 0 });
    again.check();
    await again.close();
    assert.ok(startMs < START_MAX_MS, `start took ${startMs} ms`);
    assert.ok(process.memoryUsage.rss() - before < MEMORY_MAX_BYTES, 'too much memory');
    for (const [what, ms] of Object.entries(pauses)) assert.ok(ms < PAUSE_MAX_MS, `${what}: ${ms} ms without a turn`);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});
