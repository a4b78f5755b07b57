/** The limiter by itself: takes a second at a million keys, and what one take adds to a request. */
import { SlotLimiter } from '../../src/access/limiter.ts';
import { systemClock } from '../../src/clock.ts';
import type { Bench } from '../bench.ts';
import { COMPARED, measureLimiter, SCENARIOS } from '../limiter.ts';
import { spread } from '../measure.ts';

const AIMED_AT = 'a million uniform';
const TIMED_TAKES = 200_000;
const TIMED_KEYS = 100_000;
/** Shares no factor with the number of keys: a walk with this step meets them all, far apart. */
const STEP = 38_923;

export async function limiter(bench: Bench): Promise<void> {
  const { own, ownBytesPerKey, peer } = measureLimiter((line) => bench.progress(line));
  bench.note(COMPARED);
  for (const scenario of SCENARIOS) {
    const { takesPerSecond, withoutClockPerSecond, overAdmitted } = own[scenario];
    const theirs = typeof peer === 'string' ? '' : `; rate-limiter-flexible ${millions(peer.takesPerSecond[scenario])}`;
    const clockless = `${millions(withoutClockPerSecond)} when the time is handed in`;
    const value = `${millions(takesPerSecond)} takes a second (${clockless})${theirs}; ${overAdmitted} admitted too many`;
    bench.figure('limiter', scenario, value);
    if (overAdmitted > 0) throw new Error(`${scenario}: ${overAdmitted} requests admitted beyond the limit`);
  }
  const theirBytes = typeof peer === 'string' ? '' : `; rate-limiter-flexible ${peer.bytesPerKey.toFixed(0)}`;
  bench.figure('limiter', 'bytes a key', `${ownBytesPerKey.toFixed(1)}${theirBytes}`);
  bench.progress('limiter: one take at a time');
  bench.figure('limiter', 'one take, p50 and p99', timedTakes());
  if (typeof peer === 'string') bench.miss('limiter', `rate-limiter-flexible: ${peer}`);
  else bench.reach('limiter', spread([own[AIMED_AT].takesPerSecond / peer.takesPerSecond[AIMED_AT]]));
}

/** Each by itself: what a request waits for it. Reading the clock is in it. */
function timedTakes(): string {
  const slots = new SlotLimiter({ clock: systemClock });
  const caller = { slot: 0, perMinute: 1_000_000, perDay: 1_000_000 };
  const nanoseconds = new Float64Array(TIMED_TAKES);
  for (let i = 0; i < 2 * TIMED_TAKES; i++) {
    caller.slot = (i * STEP) % TIMED_KEYS;
    const began = process.hrtime.bigint();
    slots.take(caller);
    // The first half warms up, and opens every window.
    nanoseconds[i % TIMED_TAKES] = Number(process.hrtime.bigint() - began);
  }
  nanoseconds.sort();
  const at = (share: number) => `${nanoseconds[Math.floor(share * TIMED_TAKES)].toFixed(0)} ns`;
  return `${at(0.5)}, ${at(0.99)} (reading the clock included)`;
}

function millions(perSecond: number): string {
  return `${(perSecond / 1e6).toFixed(2)} million`;
}
