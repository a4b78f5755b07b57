/** What several threads count at once in the same rows comes to what one would have counted. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { systemClock } from '../../src/clock.ts';
import { SharedLimiter } from '../../src/threads/limiter.ts';
import { clockOrigin, newMemory } from '../../src/threads/memory.ts';
import { bundle } from '../faults/bundle.ts';
import type { Counted, Order } from './counting.ts';

const THREADS = 4;
const clock = { now: () => 1_000, wall: () => 1_700_000_001_000 };
const unix = clock.wall;

/** In one file, since no loader of TypeScript helps the threads of Node 20. */
const dir = mkdtempSync(join(tmpdir(), 'petstore-counting-'));
after(() => rmSync(dir, { recursive: true, force: true }));
const counter = bundle(join(import.meta.dirname, 'counting.ts'), join(dir, 'counting.mjs'));

/** All threads at once, on new rows; `meanwhile` is done here again and again until they are through. */
async function count(
  order: Pick<Order, 'takes' | 'slots' | 'perMinute' | 'banAfter'>,
  meanwhile: (limiter: SharedLimiter) => void = () => {},
) {
  const memory = newMemory();
  const limiter = new SharedLimiter({ clock, unix }, memory);
  const gate = new Int32Array(new SharedArrayBuffer(4));
  const workerData: Order = { memory, gate, threads: THREADS, ...order };
  const file = await counter;
  let isOver = false;
  const counting = Promise.all(
    Array.from({ length: THREADS }, async () => {
      const [told]: Counted[] = await once(new Worker(file, { workerData }), 'message');
      return told;
    }),
  ).finally(() => (isOver = true));
  while (!isOver) {
    meanwhile(limiter);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return { limiter, told: await counting };
}

test('one caller, four threads: exactly its limit is admitted, and each remaining is told once', async () => {
  const perMinute = 300_000;
  const { told, limiter } = await count({ takes: 150_000, slots: { count: 1, apart: 1 }, perMinute, banAfter: 0 });
  const remaining = told.flatMap((one) => one.remaining).sort((a, b) => a - b);
  assert.equal(remaining.length, perMinute);
  assert.ok(
    remaining.every((value, at) => value === at),
    'each from 0 to 299,999 once',
  );
  assert.ok(told.filter((one) => one.remaining.length > 0).length > 1, 'they did it together');
  assert.equal(limiter.look({ slot: 0, perMinute, perDay: 1e9 }).verdict, 'limited');
});

test('one ban begins, and is counted once, whichever thread strikes last', async () => {
  const { told, limiter } = await count({
    takes: 20_000,
    slots: { count: 1, apart: 1 },
    perMinute: 10,
    banAfter: 50_000,
  });
  assert.equal(
    told.reduce((sum, { bansBegun }) => sum + bansBegun, 0),
    1,
  );
  assert.equal(limiter.bansBegun, 1);
  assert.deepEqual(limiter.look({ slot: 0, perMinute: 10, perDay: 1e9 }).bans, 1);
});

test('rows grow while others count, and a change is named again after it was written down', async () => {
  const slots = { count: 500, apart: 401 }; // two of them have one lock now and then
  const written = new Map<number, number>();
  const write = (limiter: SharedLimiter) => {
    for (const slot of limiter.changed(100)) {
      written.set(slot, limiter.counted({ slot, perMinute: 1e6, perDay: 1e9 }).dayUsed);
    }
  };
  const { limiter, told } = await count({ takes: 100_000, slots, perMinute: 1e6, banAfter: 0 }, write);
  assert.equal(told.flatMap(({ remaining }) => remaining).length, THREADS * 100_000);
  for (let i = 0; i < slots.count; i++) write(limiter); // more often than there is something left
  const wanted = Array.from({ length: slots.count }, (_, i) => i * slots.apart);
  assert.deepEqual(
    wanted.filter((slot) => written.get(slot) !== (THREADS * 100_000) / slots.count),
    [],
    'what was written down last is what was counted',
  );
});

test('a thread that loses its core between two readings of the clock does not lag for ever', () => {
  const busyUntil = (end: number) => {
    while (performance.now() < end);
  };
  let readings = 0;
  const disturbed = {
    ...systemClock,
    now: () => {
      if (readings++ === 0) busyUntil(performance.now() + 30);
      return performance.now();
    },
  };
  const lag = clockOrigin(systemClock) - clockOrigin(disturbed);
  assert.ok(Math.abs(lag) < 1, `${lag} ms`);
});
