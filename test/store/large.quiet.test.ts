/** A million animals and a hundred thousand orders: what it costs in time, memory, and pauses of the event loop. */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, openSync, readdirSync, readFileSync, readSync, rmSync } from 'node:fs';
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

const SCHEDSTAT = `/proc/self/task/${process.pid}/schedstat`;
const schedstat = existsSync(SCHEDSTAT) ? openSync(SCHEDSTAT, 'r') : undefined;
/** One for all readings: new ones would have the collector run, and that is among what is measured. */
const told = Buffer.alloc(100);

/** How long this thread was ready to run while others had the processor, in ms; 0 where it is not told. */
function waitedMs(): number {
  if (schedstat === undefined) return 0;
  const length = readSync(schedstat, told, 0, told.length, 0);
  return Number(told.toString('latin1', 0, length).split(' ')[1]) / 1e6;
}

/** CPU time of the process: also of the threads that collect garbage while this one stands still for them. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** All three of one moment: the thread did not wait between the two readings. */
function moment(): { now: number; waited: number; cpu: number } {
  for (;;) {
    const waited = waitedMs();
    const now = performance.now();
    const cpu = cpuMs();
    if (waitedMs() === waited) return { now, waited, cpu };
  }
}

interface Pauses {
  /** The longest time between two turns of the event loop, in ms. */
  longest: number;
  /** The same without what a busy machine adds: time in which this thread waited, or the process did not work. */
  ours: number;
}

async function pausesDuring(work: () => Promise<unknown>): Promise<Pauses> {
  const pauses: Pauses = { longest: 0, ours: 0 };
  let before = moment();
  let isOver = false;
  const turn = () => {
    const after = moment();
    const ms = after.now - before.now;
    const ours = Math.min(ms - (after.waited - before.waited), after.cpu - before.cpu);
    pauses.longest = Math.max(pauses.longest, ms);
    pauses.ours = Math.max(pauses.ours, ours);
    before = after;
    if (!isOver) setImmediate(turn);
  };
  turn();
  await work();
  isOver = true;
  await new Promise((resolve) => setImmediate(resolve));
  return pauses;
}

function shown({ longest, ours }: Pauses): string {
  return `at most ${longest.toFixed(1)} ms without a turn, ${ours.toFixed(1)} ms of our own doing`;
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
    store.check();
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
    await store.write((ahead) => ({ op: 'addPets', first: ahead.nextPetId(), pets, once }));
  }
}

async function placeOrders(store: MemoryStore): Promise<void> {
  for (let i = 0; i < ORDERS; i += 100) {
    const place = (_: unknown, k: number) =>
      store.write((ahead) => ({
        op: 'placeOrder',
        order: { id: ahead.nextOrderId(), petId: (i + k) * 2 + 1, status: 'placed', placedAt: 1_767_225_600_000 },
      }));
    await Promise.all(Array.from({ length: 100 }, place));
  }
}

function pageMs(store: MemoryStore, after: number, status?: PetStatus): number {
  const began = performance.now();
  for (let i = 0; i < 20_000; i++) store.read.pets(after, 20, status);
  return (performance.now() - began) / 20_000;
}

test('a pause in which the process works is ours, one in which it stands still is not', async (t) => {
  const pauseMs = 2 * PAUSE_MAX_MS;
  const working = await pausesDuring(async () => {
    await sleep(10);
    const began = cpuMs();
    while (cpuMs() - began < pauseMs);
  });
  const still = await pausesDuring(async () => {
    await sleep(10);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pauseMs);
  });
  for (const [what, pauses] of Object.entries({ working, still })) t.diagnostic(`${what}: ${shown(pauses)}`);
  assert.ok(working.ours > PAUSE_MAX_MS, 'work is ours');
  assert.ok(still.longest >= pauseMs && still.ours < PAUSE_MAX_MS, 'standing still is not');
});

test('a million animals: pauses, start, memory', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'petstore-large-'));
  const pauses: Record<string, Pauses> = {};
  try {
    const { store, journal } = await openStore(dir, { compact: compactElsewhere });
    pauses.import = await pausesDuring(() => importAnimals(store));
    await sleep(100);
    pauses.orders = await pausesDuring(() => placeOrders(store));
    pauses.compaction = await pausesDuring(() => journal.compact());
    for (const [after, status] of [[0], [900_000], [0, 'sold']] as [number, PetStatus?][]) {
      t.diagnostic(`page after ${after} ${status ?? ''}: ${(pageMs(store, after, status) * 1000).toFixed(2)} µs`);
    }
    await store.close();

    const bytes = readdirSync(dir).map((name) => readFileSync(join(dir, name)).length);
    const { startMs, memoryBytes, counts } = openElsewhere(dir);
    t.diagnostic(`start on ${bytes.reduce((a, b) => a + b)} bytes: ${startMs.toFixed(0)} ms`);
    t.diagnostic(`memory, more than before: ${(memoryBytes / 1e6).toFixed(0)} MB`);
    for (const [what, each] of Object.entries(pauses)) t.diagnostic(`${what}: ${shown(each)}`);
    assert.deepEqual(counts, { pets: ANIMALS, orders: ORDERS, categories: 0, keys: 0 });
    assert.ok(startMs < START_MAX_MS, `start took ${startMs} ms`);
    assert.ok(memoryBytes > 0 && memoryBytes < MEMORY_MAX_BYTES, `${memoryBytes} bytes of memory`);
    for (const [what, each] of Object.entries(pauses)) assert.ok(each.ours < PAUSE_MAX_MS, `${what}: ${shown(each)}`);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});
