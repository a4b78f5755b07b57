/** A thread that takes tokens: of one caller, or of many in turn. Tells what it was told. */
import { parentPort, workerData } from 'node:worker_threads';
import { SharedLimiter } from '../../src/threads/limiter.ts';
import type { Memory } from '../../src/threads/memory.ts';

export interface Order {
  memory: Memory;
  /** Counts how many are ready, so that all begin at once. */
  gate: Int32Array;
  threads: number;
  takes: number;
  /** From the first slot on, so far apart. */
  slots: { count: number; apart: number };
  perMinute: number;
  banAfter: number;
}

export interface Counted {
  /** Of the takes admitted, what they were told remains. */
  remaining: number[];
  bansBegun: number;
}

const { memory, gate, threads, takes, slots, perMinute, banAfter }: Order = workerData;
const clock = { now: () => 1_000, wall: () => 1_700_000_001_000 };
const limiter = new SharedLimiter({ clock, unix: () => 1_700_000_001_000, banAfter }, memory);
const counted: Counted = { remaining: [], bansBegun: 0 };

if (Atomics.add(gate, 0, 1) === threads - 1) Atomics.notify(gate, 0);
for (let ready = 0; (ready = Atomics.load(gate, 0)) < threads; ) Atomics.wait(gate, 0, ready);
for (let i = 0; i < takes; i++) {
  const slot = slots.apart * (i % slots.count);
  const { verdict, minute, banBegan } = limiter.take({ slot, perMinute, perDay: 1e9 });
  if (verdict === 'admitted') counted.remaining.push(minute.remaining);
  if (banBegan) counted.bansBegun++;
}
parentPort!.postMessage(counted);
