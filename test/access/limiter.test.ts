/** The limiter of the file engine: the contract, and what it has beside it. */
import assert from 'node:assert/strict';
import { beforeEach, it } from 'node:test';
import { MAX_SLOTS, SlotLimiter } from '../../src/access/limiter.ts';
import { DAY_MS, type Limited, MINUTE_MS, retryAfterSeconds } from '../../src/access/limits.ts';
import { SetClock } from '../clock.ts';
import { fromNow, limiterContract } from './limiter-contract.ts';

const nothing = { dayUsed: 0, dayEndsAt: 0, banStep: 0, banEndsAt: 0 };
const small: Limited = { slot: 3, perMinute: 2, perDay: 5 };

let clock: SetClock;
beforeEach(() => {
  clock = new SetClock();
});
/** Store time: even, and somewhere else than both clocks. */
const unix = () => clock.now() + 1_700_000_000_000;
const fresh = (banAfter?: number) => new SlotLimiter({ clock, unix, banAfter });

function take(limiter: SlotLimiter, caller: Limited, times: number): void {
  for (let time = 0; time < times; time++) limiter.take(caller);
}

limiterContract('the limiter of one process', ({ banAfter }) => {
  const callers = new Map<number, Limited>();
  const tested = {
    limiter: fresh(banAfter),
    advance: (ms: number) => clock.advance(ms),
    set: (caller: Limited) => void callers.set(caller.slot, caller),
    restart: () => {
      const before = tested.limiter;
      tested.limiter = fresh(banAfter);
      for (const caller of callers.values()) tested.limiter.restore(caller, before.counted(caller));
    },
    passFor: (caller: Limited, ms: number) => tested.limiter.advance(caller, ms),
    refill: (caller: Limited) => tested.limiter.refill(caller),
  };
  return tested;
});

it('Retry-After is whole seconds, at least 1, with 2 ms for a timer that fires early', () => {
  for (const [ms, seconds] of [
    [-5, 1],
    [0, 1],
    [998, 1],
    [998.5, 2],
    [59_998, 60],
    [60_000, 61],
  ]) {
    assert.equal(retryAfterSeconds(1_000_000 + ms, 1_000_000), seconds, `${ms} ms`);
  }
});

it('writes down nothing of what has expired, drops it when it is put back, and clamps what cannot be', () => {
  const limiter = fresh(1);
  take(limiter, small, 3);
  const old = limiter.counted(small);
  clock.advance(2 * DAY_MS);
  assert.deepEqual(limiter.counted(small), nothing);
  const next = fresh();
  next.restore(small, old);
  assert.deepEqual([next.counted(small), next.look(small).day.remaining, next.changed(10)], [nothing, 5, []]);
  const far = unix() + 400 * DAY_MS;
  next.restore(small, { dayUsed: 5, dayEndsAt: far, banStep: 200, banEndsAt: far });
  const { at, day, banEndsAt, bans } = next.look(small);
  assert.deepEqual([day.endsAt - at, banEndsAt - at, bans], [DAY_MS, DAY_MS, 6]);
  next.restore(small, { ...nothing, banStep: 1, banEndsAt: far });
  assert.equal(next.look(small).banEndsAt - at, 2 * MINUTE_MS);
});

it('a jump of the wall clock is told within 250 ms; it changes no decision, and nothing that is written down', () => {
  const limiter = fresh(1);
  take(limiter, small, 3);
  for (const jump of [9 * DAY_MS, -40 * DAY_MS]) {
    const before = [fromNow(limiter.look(small)), limiter.counted(small)];
    clock.setWall(clock.wall() + jump);
    assert.deepEqual([fromNow(limiter.look(small)), limiter.counted(small)], before);
    clock.advance(250);
    assert.equal(limiter.look(small).at, clock.wall());
  }
});

it('names changed callers once, never more than asked for, and again when they could not be saved', () => {
  const limiter = fresh(2);
  const changed = (max: number) => limiter.changed(max).sort((a, b) => a - b);
  for (const slot of [5, 64, 31, 2_000, 5]) limiter.take({ ...small, slot });
  const first = changed(3);
  assert.equal(first.length, 3);
  limiter.take({ ...small, slot: 0 });
  const rest = changed(3);
  assert.deepEqual(
    [...first, ...rest].sort((a, b) => a - b),
    [0, 5, 31, 64, 2_000],
  );
  limiter.unsaved(first);
  assert.deepEqual([changed(9), changed(9)], [first, []]);
  take(limiter, small, 2);
  const changes: [() => unknown, number[]][] = [
    [() => limiter.look(small), [3]],
    [() => limiter.look(small), []],
    [() => limiter.take(small), []],
    [() => limiter.take(small), [3]],
    [() => [limiter.advance(small, 1), limiter.lift(small)], [3]],
    [() => limiter.advance(small, 1), [3]],
    [() => limiter.refill(small), [3]],
  ];
  for (const [change, slots] of changes) {
    change();
    assert.deepEqual(changed(9), slots, `${change}`);
  }
});

it('keeps its exactness through years, a take a day or a ban', () => {
  const limiter = fresh(1);
  for (let days = 0; days < 800; days++) {
    const { day, at } = limiter.take(small);
    assert.deepEqual([day.remaining, day.endsAt - at, at], [4, DAY_MS, clock.wall()]);
    clock.advance(DAY_MS);
  }
  take(limiter, small, 3);
  clock.advance(2 * MINUTE_MS);
  for (let left = 1; left >= 0; left--, clock.advance(DAY_MS)) assert.equal(limiter.look(small).bans, left);
});

it('keeps what it knows when it grows, and refuses a slot beyond its maximum', () => {
  const limiter = fresh(1);
  take(limiter, small, 3);
  take(limiter, { ...small, slot: 1_000_000 }, 1);
  assert.deepEqual([limiter.look(small).verdict, limiter.look(small).day.remaining], ['banned', 3]);
  assert.deepEqual(limiter.changed(10), [1_000_000, 3]);
  assert.throws(() => limiter.take({ ...small, slot: MAX_SLOTS }), RangeError);
});
