/**
 * Takes a second, bytes a key and over-admission of the limiter, two windows each, and the same of the library that
 * most people use for it. Both hold all keys of a scenario before they are timed: a limiter that knows few is quick.
 * `node --import tsx bench/limiter.ts`; each peer measurement runs in a process of its own.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { SlotLimiter } from '../src/access/limiter.ts';
import { type Clock, systemClock } from '../src/clock.ts';

export const SCENARIOS = ['one hot key', 'a million uniform', 'a million Zipf', 'all refused'] as const;
export type Scenario = (typeof SCENARIOS)[number];

export const COMPARED =
  'Both limiters keep a minute and a day, and know a million keys before they are timed (with one hot key ' +
  'rate-limiter-flexible knows only that). It is two of its RateLimiterMemory in a RateLimiterUnion.';

export interface Takes {
  takesPerSecond: number;
  /** The same on a clock that stands still: what is left when the machine's price of a reading is taken off. */
  withoutClockPerSecond: number;
  /** Requests admitted beyond what the limits allow, over all keys; there must be none. */
  overAdmitted: number;
}

export interface LimiterReport {
  own: Record<Scenario, Takes>;
  ownBytesPerKey: number;
  /** Why there is no peer to compare with, or what it did. */
  peer: string | { takesPerSecond: Record<Scenario, number>; bytesPerKey: number };
}

const KEYS = 1_000_000;
const PEER_KEYS_FOR_BYTES = 100_000;
/** Filling it with a million keys takes 8 seconds on a quiet machine. */
const PEER_TIMEOUT_MS = 180_000;
const SAMPLES = 2 ** 20;
const ROUND_MS = 500;
const ROUNDS = 3;
/** Takes between two looks at the clock of the measurement. */
const BATCH = 4_096;
const PEER_BATCH = 64;
const HUGE = 1_000_000_000;
const SELF = fileURLToPath(import.meta.url);
const PEER = new URL('peers/node_modules/rate-limiter-flexible/index.js', import.meta.url);

/** Which key each request is of. Seeded, so that every run and the peer get the same. */
function requestsOf(scenario: Scenario): Uint32Array {
  const slots = new Uint32Array(SAMPLES);
  let state = 0x9e3779b9;
  const random = () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
  if (scenario === 'a million uniform' || scenario === 'all refused') return slots.map(() => random() * KEYS);
  if (scenario === 'a million Zipf') return slots.map(zipf(random));
  return slots;
}

/** The n-th most frequent key is asked for 1/n as often as the first. */
function zipf(random: () => number): () => number {
  const cumulated = new Float64Array(KEYS);
  let total = 0;
  for (let rank = 0; rank < KEYS; rank++) cumulated[rank] = total += 1 / (rank + 1);
  return () => {
    const wanted = random() * total;
    let [low, high] = [0, KEYS - 1];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (cumulated[middle] < wanted) low = middle + 1;
      else high = middle;
    }
    return low;
  };
}

function measureOwn(scenario: Scenario): Takes {
  const requests = requestsOf(scenario);
  const limit = scenario === 'all refused' ? 0 : HUGE;
  const began = systemClock.now();
  return {
    takesPerSecond: takesPerSecond(systemClock, requests, limit),
    withoutClockPerSecond: takesPerSecond({ ...systemClock, now: () => began }, requests, limit),
    overAdmitted: overAdmission(requests),
  };
}

function takesPerSecond(clock: Clock, requests: Uint32Array, limit: number): number {
  const limiter = new SlotLimiter({ clock, banAfter: 0 });
  // In the server the key's record is at hand, since authentication has just read it. So one record will do here.
  const caller = { slot: 0, perMinute: limit, perDay: limit };
  for (; caller.slot < KEYS; caller.slot++) limiter.take(caller);
  return best(() => {
    let takes = 0;
    const began = performance.now();
    while (performance.now() - began < ROUND_MS) {
      for (let n = 0; n < BATCH; n++) {
        caller.slot = requests[takes++ & (SAMPLES - 1)];
        limiter.take(caller);
      }
    }
    return takes / ((performance.now() - began) / 1_000);
  });
}

/** Every key of the scenario on the Free plan, within one minute: what was admitted beyond 60 each. */
function overAdmission(requests: Uint32Array): number {
  const limiter = new SlotLimiter({ clock: systemClock });
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
  const limiter = new SlotLimiter({ clock: systemClock });
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

function best(measure: () => number): number {
  return Math.max(...Array.from({ length: ROUNDS }, measure));
}

interface PeerLimiter {
  consume(key: string): Promise<unknown>;
}

interface PeerLibrary {
  RateLimiterMemory: new (options: { keyPrefix: string; points: number; duration: number }) => PeerLimiter;
  RateLimiterUnion: new (...limiters: PeerLimiter[]) => PeerLimiter;
}

/** Both windows, as its documentation says to combine them. */
async function newPeer(points: number): Promise<PeerLimiter> {
  const library = ((await import(PEER.href)) as { default: PeerLibrary }).default;
  const minute = new library.RateLimiterMemory({ keyPrefix: 'minute', points, duration: 60 });
  const day = new library.RateLimiterMemory({ keyPrefix: 'day', points, duration: 86_400 });
  return new library.RateLimiterUnion(minute, day);
}

/** A refusal is a rejection there; it is no error here. */
function refused(): void {}

async function measurePeer(scenario: Scenario): Promise<number> {
  const requests = requestsOf(scenario);
  const peer = await newPeer(scenario === 'all refused' ? 0 : HUGE);
  const keys = scenario === 'one hot key' ? 1 : KEYS;
  for (let key = 0; key < keys; key++) await peer.consume(`k${key}`).catch(refused);
  let fastest = 0;
  for (let round = 0; round < ROUNDS; round++) {
    let takes = 0;
    const began = performance.now();
    while (performance.now() - began < ROUND_MS) {
      for (let n = 0; n < PEER_BATCH; n++) {
        await peer.consume(`k${requests[takes++ & (SAMPLES - 1)]}`).catch(refused);
      }
    }
    fastest = Math.max(fastest, takes / ((performance.now() - began) / 1_000));
  }
  return fastest;
}

async function peerBytesPerKey(): Promise<number> {
  const peer = await newPeer(60);
  const before = memoryInUse();
  for (let key = 0; key < PEER_KEYS_FOR_BYTES; key++) await peer.consume(`k${key}`);
  const bytes = memoryInUse() - before;
  await peer.consume('k0');
  return bytes / PEER_KEYS_FOR_BYTES;
}

/** In a process of its own, because its timers and keys stay in memory. */
function askPeer(what: Scenario | 'bytes'): number {
  const { stdout, stderr, status, error } = spawnSync(process.execPath, [...process.execArgv, SELF, '--peer', what], {
    encoding: 'utf8',
    timeout: PEER_TIMEOUT_MS,
  });
  if (status !== 0) throw new Error(`measuring the peer failed: ${error?.message ?? stderr}`);
  return Number(stdout);
}

/** Each step takes seconds, in which nothing else happens here: `progress` is told of it before. */
export function measureLimiter(progress: (line: string) => void): LimiterReport {
  const each = <T>(who: string, measure: (scenario: Scenario) => T) => {
    const measured = SCENARIOS.map((scenario) => {
      progress(`${who}: ${scenario}`);
      return [scenario, measure(scenario)];
    });
    return Object.fromEntries(measured) as Record<Scenario, T>;
  };
  progress('limiter: bytes a key');
  const ownBytesPerKey = bytesPerKey(); // first: what is given back late would be taken off
  const own = each('limiter', measureOwn);
  if (!existsSync(PEER)) return { own, ownBytesPerKey, peer: 'not installed in bench/peers: not compared' };
  const takesPerSecond = each('limiter: rate-limiter-flexible, filled first', askPeer);
  progress('limiter: rate-limiter-flexible, bytes a key');
  return { own, ownBytesPerKey, peer: { takesPerSecond, bytesPerKey: askPeer('bytes') } };
}

function print({ own, ownBytesPerKey, peer }: LimiterReport): void {
  console.log(COMPARED);
  for (const scenario of SCENARIOS) {
    const { takesPerSecond, withoutClockPerSecond, overAdmitted } = own[scenario];
    const theirs = typeof peer === 'string' ? '' : comparison(takesPerSecond, peer.takesPerSecond[scenario]);
    console.log(
      `${scenario}: ${millions(takesPerSecond)} takes/s (${millions(withoutClockPerSecond)} without the clock), ${overAdmitted} over-admitted${theirs}`,
    );
  }
  const theirs = typeof peer === 'string' ? '' : `; rate-limiter-flexible ${peer.bytesPerKey.toFixed(0)}`;
  console.log(`bytes a key at a million keys: ${ownBytesPerKey.toFixed(1)}${theirs}`);
  if (typeof peer === 'string') console.log(`rate-limiter-flexible: ${peer}`);
}

function comparison(own: number, theirs: number): string {
  return `; rate-limiter-flexible ${millions(theirs)}: ${(own / theirs).toFixed(0)} times as many`;
}

function millions(perSecond: number): string {
  return `${(perSecond / 1e6).toFixed(2)} million`;
}

if (process.argv[1] === SELF) {
  const [flag, what] = process.argv.slice(2);
  if (flag !== '--peer') print(measureLimiter(console.error));
  else {
    console.log(what === 'bytes' ? await peerBytesPerKey() : await measurePeer(what as Scenario));
    process.exit(0); // its timers would keep the process for a day
  }
}
