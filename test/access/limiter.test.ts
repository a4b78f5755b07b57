import assert from 'node:assert/strict';
import { it } from 'node:test';
import { MAX_SLOTS, SlotLimiter } from '../../src/access/limiter.ts';
import { SetClock } from '../../src/clock.ts';
import { limiterContract } from './limiter-contract.ts';

limiterContract('the limiter of one process', (options) => new SlotLimiter(options));

it('keeps what it knows when it grows', () => {
  const clock = new SetClock();
  const limiter = new SlotLimiter({ clock, banAfter: 1 });
  const caller = { slot: 1_023, perMinute: 1, perDay: 9 };
  limiter.take(caller);
  limiter.take(caller);
  limiter.take({ ...caller, slot: 1_024 });
  limiter.take({ ...caller, slot: 1_000_000 });
  assert.equal(limiter.look(caller).verdict, 'banned');
  assert.equal(limiter.look(caller).day.remaining, 8);
  assert.deepEqual(limiter.changed(10), [1_023, 1_024, 1_000_000]);
  clock.advance(120_000);
  assert.deepEqual(limiter.bansEnded(), [1_023]);
});

it('refuses a slot beyond its maximum instead of taking all memory', () => {
  const limiter = new SlotLimiter({ clock: new SetClock() });
  assert.throws(() => limiter.take({ slot: MAX_SLOTS, perMinute: 1, perDay: 1 }), RangeError);
});
