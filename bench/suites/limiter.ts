/**
 * The limiter by itself, beside the library that most people use for it: takes a second, two windows each, at a million
 * keys that both know before they are timed, the time handed in to both. And bytes a key, over-admission, and what one
 * take adds to a request. The library is measured in a process of its own, because its timers and keys stay in memory.
 */
import { existsSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { SlotLimiter } from '../../src/access/limiter.ts';
import { systemClock } from '../../src/clock.ts';
import type { Bench } from '../bench.ts';
import { spread } from '../measure.ts';
import { FOLDER } from '../peers.ts';
import { run } from '../run.ts';

const KEYS = 1_000_000;
const SAMPLES = 2 ** 20;
const ROUND_MS = 400;
const TIMED_TAKES = 200_000;
const HUGE = 1_000_000_000;
const LIBRARY_MAX_MS = 180_000;
const LIBRARY = `${FOLDER}peers/limiter.mjs`;
const SCENARIOS = ['one hot key', 'a million uniform', 'a million Zipf', 'all refused'] as const;
type Scenario = (typeof SCENARIOS)[number];

export async function limiter(bench: Bench): Promise<void> {
  bench.progress('limiter: bytes a key');
  const bytes = bytesPerKey(); // first: what is given back late would be taken off
  const own = new Map<Scenario, number[]>();
  for (const scenario of SCENARIOS) {
    bench.progress(`limiter: ${scenario}`);
    const requests = requestsOf(scenario);
    own.set(scenario, takesPerSecond(requests, scenario === 'all refused' ? 0 : HUGE, bench.rounds));
    const over = overAdmission(requests);
    if (over > 0) throw new Error(`${scenario}: ${over} requests admitted beyond the limit`);
    bench.figure('limiter', scenario, `${millions(spread(own.get(scenario)!).median)} takes a second, none too many`);
  }
  bench.figure('limiter', 'bytes a key', bytes.toFixed(1));
  bench.figure('limiter', 'one take, p50 and p99, reading the clock included', timedTakes());
  if (!bench.wantsPeers || !existsSync(`${FOLDER}node_modules/rate-limiter-flexible`)) {
    return bench.miss('limiter', 'rate-limiter-flexible is not installed in bench');
  }
  bench.progress('limiter: rate-limiter-flexible, filled with a million keys first');
  const told = await run([process.execPath, LIBRARY, String(KEYS)], { timeoutMs: LIBRARY_MAX_MS });
  const library: { perSecond: number; bytesPerKey: number } = JSON.parse(told);
  bench.figure('limiter', 'rate-limiter-flexible, a million uniform', `${millions(library.perSecond)} takes a second`);
  bench.figure('limiter', 'rate-limiter-flexible, bytes a key', library.bytesPerKey.toFixed(0));
  bench.reach('limiter', spread(own.get('a million uniform')!.map((perSecond) => perSecond / library.perSecond)));
}

/** Which key each request is of. Seeded, so that every run gets the same. */
function requestsOf(scenario: Scenario): Uint32Array {
  let state = 0x9e3779b9;
  const random = () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
  if (scenario === 'one hot key') return new Uint32Array(SAMPLES);
  // The n-th key is asked for 1/n as often as the first: the share of the first n is as the logarithm of n.
  const pick = scenario === 'a million Zipf' ? () => KEYS ** random() - 1 : () => random() * KEYS;
  return new Uint32Array(SAMPLES).map(pick);
}

function takesPerSecond(requests: Uint32Array, limit: number, rounds: number): number[] {
  const began = systemClock.now();
  const limiter = new SlotLimiter({ clock: systemClock, unix: () => began, banAfter: 0 });
  // In the server the key's record is at hand, since authentication has just read it. So one record will do here.
  const caller = { slot: 0, perMinute: limit, perDay: limit };
  for (; caller.slot < KEYS; caller.slot++) limiter.take(caller);
  return Array.from({ length: rounds }, () => {
    let takes = 0;
    const began = performance.now();
    while (performance.now() - began < ROUND_MS) {
      for (let n = 0; n < 4_096; n++) {
        caller.slot = requests[takes++ & (SAMPLES - 1)];
        limiter.take(caller);
      }
    }
    return takes / ((performance.now() - began) / 1_000);
  });
}

/** Every key of the scenario on the Free plan, within one minute: what was admitted beyond 60 each. */
function overAdmission(requests: Uint32Array): number {
  const limiter = new SlotLimiter({ clock: systemClock, unix: () => 0 });
  const admitted = new Uint32Array(KEYS);
  const caller = { slot: 0, perMinute: 60, perDay: 1_000 };
  for (const slot of requests) {
    caller.slot = slot;
    if (limiter.take(caller).verdict === 'admitted') admitted[slot]++;
  }
  return admitted.reduce((over, count) => over + Math.max(0, count - 60), 0);
}

function bytesPerKey(): number {
  const before = memoryInUse();
  const limiter = new SlotLimiter({ clock: systemClock, unix: systemClock.now });
  const caller = { slot: 0, perMinute: 60, perDay: 1_000 };
  for (; caller.slot < KEYS; caller.slot++) limiter.take(caller);
  const bytes = memoryInUse() - before;
  limiter.take(caller);
  return bytes / KEYS;
}

function memoryInUse(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

/** Each by itself: what a request waits for it. */
function timedTakes(): string {
  const limiter = new SlotLimiter({ clock: systemClock, unix: systemClock.now });
  const caller = { slot: 0, perMinute: HUGE, perDay: HUGE };
  const nanoseconds = new Float64Array(TIMED_TAKES);
  for (let i = 0; i < 2 * TIMED_TAKES; i++) {
    caller.slot = (i * 38_923) % 100_000; // all slots, far apart
    const began = process.hrtime.bigint();
    limiter.take(caller);
    // The first half warms up, and opens every window.
    nanoseconds[i % TIMED_TAKES] = Number(process.hrtime.bigint() - began);
  }
  nanoseconds.sort();
  return [0.5, 0.99].map((share) => `${nanoseconds[share * TIMED_TAKES].toFixed(0)} ns`).join(', ');
}

function millions(perSecond: number): string {
  return `${(perSecond / 1e6).toFixed(2)} million`;
}
