import assert from 'node:assert/strict';
import type { Decision, Limited, Limiter } from '../../src/access/limits.ts';
import { MINUTE_MS } from '../../src/access/limits.ts';
import { SetClock } from '../../src/clock.ts';

export type MakeLimiter = (options: { clock: SetClock; banAfter?: number }) => Limiter;

export const free: Limited = { slot: 0, perMinute: 60, perDay: 1_000 };
export const small: Limited = { slot: 3, perMinute: 2, perDay: 5 };

/** A decision outlives the next call only as a copy. */
export function copy(decision: Decision): Decision {
  return structuredClone(decision);
}

export function fresh(make: MakeLimiter, banAfter?: number) {
  const clock = new SetClock();
  return { clock, limiter: make({ clock, banAfter }) };
}

export function takes(limiter: Limiter, caller: Limited, times: number): Decision {
  for (let time = 1; time < times; time++) limiter.take(caller);
  return copy(limiter.take(caller));
}

/** A request admitted every minute until none of the day is left, and then the end of the last minute. */
export function useUpDay(clock: SetClock, limiter: Limiter, caller: Limited): void {
  for (let used = 0; used < caller.perDay; used++) {
    assert.equal(limiter.take(caller).verdict, 'admitted');
    clock.advance(MINUTE_MS);
  }
}
