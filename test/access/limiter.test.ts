/** The limiter of the file engine: the contract, and what it has beside it. */
import assert from 'node:assert/strict';
import { beforeEach, it } from 'node:test';
import { MAX_SLOTS, SlotLimiter } from '../../src/access/limiter.ts';
import { DAY_MS, type Limited, MINUTE_MS } from '../../src/access/limits.ts';
import { SetClock } from '../../src/clock.ts';
import { limiterContract } from './limiter-contract.ts';

const nothing = { dayUsed: 0, dayEndsAt: 0, banStep: 0, banEndsAt: 0 };
const small: Limited = { slot: 3, perMinute: 2, perDay: 5 };

let clock: SetClock;
beforeEach(() => {
  clock = new SetClock();
});
/** Store time: even, and somewhere else than both clocks. */
const unix = () => clock.now() + 1_700_000_000_000;
const fresh = (banAfter?: number) => new SlotLimiter({ clock, unix, banAfter });

function restarted(limiter: SlotLimiter, callers = [small], banAfter?: number): SlotLimiter {
  const next = fresh(banAfter);
  for (const caller of callers) next.restore(caller, limiter.counted(caller));
  return next;
}

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
      tested.limiter = restarted(tested.limiter, [...callers.values()], banAfter);
    },
    passFor: (caller: Limited, ms: number) => tested.limiter.advance(caller, ms),
    refill: (caller: Limited) => tested.limiter.refill(caller),
  };
  return tested;
});

it('a restart gives back neither the day nor a ban, and remembers the escalation', () => {
  const before = fresh(1);
  take(before, small, 3);
  clock.advance(10_000);
  const after = restarted(before, [small], 1);
  const { verdict, retryAt, at, day } = after.take(small);
  assert.deepEqual([verdict, retryAt - at], ['banned', 110_000]);
  assert.deepEqual([day.remaining, day.endsAt - at], [3, DAY_MS - 10_000]);
  clock.advance(110_000);
  assert.deepEqual(after.bansEnded(), [3]);
  take(after, small, 2);
  const again = after.take(small);
  assert.equal(again.retryAt - again.at, 8 * MINUTE_MS);
});

it('tells nothing of what has expired, and drops it when it is put back', () => {
  const limiter = fresh(1);
  take(limiter, small, 3);
  const old = limiter.counted(small);
  clock.advance(2 * DAY_MS);
  assert.deepEqual(limiter.counted(small), nothing);
  const next = fresh();
  next.restore(small, old);
  assert.deepEqual(next.counted(small), nothing);
  assert.deepEqual([next.look(small).day.remaining, next.changed(10), next.bansEnded()], [5, [], []]);
});

it('clamps ends in the far future to one day, and to the length of the ban', () => {
  const limiter = fresh();
  const far = unix() + 400 * DAY_MS;
  limiter.restore(small, { dayUsed: 5, dayEndsAt: far, banStep: 200, banEndsAt: far });
  const first = limiter.look(small);
  assert.deepEqual([first.day.endsAt - first.at, first.banEndsAt - first.at, first.bans], [DAY_MS, DAY_MS, 6]);
  limiter.restore({ ...small, slot: 4 }, { ...nothing, banStep: 1, banEndsAt: far });
  const second = limiter.look({ ...small, slot: 4 });
  assert.equal(second.retryAt - second.at, 2 * MINUTE_MS);
  clock.advance(DAY_MS);
  assert.equal(limiter.take(small).verdict, 'admitted');
});

it('a jump of the wall clock changes no decision, and nothing that is written down', () => {
  const limiter = fresh(1);
  take(limiter, small, 3);
  const before = [structuredClone(limiter.look(small)), limiter.counted(small)];
  for (const jump of [9 * DAY_MS, -40 * DAY_MS]) {
    clock.setWall(clock.wall() + jump);
    assert.deepEqual([limiter.look(small), limiter.counted(small)], before);
  }
});

it('names changed callers once, never more than asked for, and again when they could not be saved', () => {
  const limiter = fresh();
  for (const slot of [5, 64, 31, 2_000, 5]) limiter.take({ ...small, slot });
  const first = limiter.changed(3);
  assert.equal(first.length, 3);
  limiter.take({ ...small, slot: 0 });
  const rest = [...limiter.changed(3), ...limiter.changed(3)];
  const ascending = (a: number, b: number) => a - b;
  assert.deepEqual([...first, ...rest].sort(ascending), [0, 5, 31, 64, 2_000]);
  assert.deepEqual(limiter.changed(3), []);
  limiter.unsaved(rest);
  assert.deepEqual(limiter.changed(3).sort(ascending), rest.sort(ascending));
});

it('a look and a refusal are nothing to write down; a ban and its lifting are', () => {
  const limiter = fresh(2);
  take(limiter, small, 2);
  limiter.changed(10);
  limiter.look(small);
  limiter.take(small);
  assert.deepEqual(limiter.changed(10), []);
  limiter.take(small);
  assert.deepEqual(limiter.changed(10), [3]);
  limiter.lift(small);
  assert.deepEqual(limiter.changed(10), [3]);
});

it('names every ban that ran out, once', () => {
  const limiter = fresh(1);
  take(limiter, small, 3);
  clock.advance(1);
  for (const slot of [70, 71]) take(limiter, { ...small, slot }, 3);
  limiter.lift({ ...small, slot: 71 });
  clock.advance(2 * MINUTE_MS - 2);
  assert.deepEqual(limiter.bansEnded(), []);
  for (const ended of [[3], [70], []]) {
    clock.advance(1);
    assert.deepEqual(limiter.bansEnded(), ended);
  }
});

it('lets time pass for one caller, and forgets one, and touches no other', () => {
  const limiter = fresh(1);
  const other = { ...small, slot: 4 };
  for (const caller of [small, other]) take(limiter, caller, 3);
  limiter.changed(10);
  limiter.advance(small, 90_000);
  const { verdict, at, minute, day, retryAt } = limiter.look(small);
  assert.deepEqual([verdict, retryAt - at, minute.remaining, day.endsAt - at], ['banned', 30_000, 2, DAY_MS - 90_000]);
  assert.equal(limiter.counted(small).banEndsAt, unix() + 30_000);
  assert.equal(limiter.look(other).retryAt - at, 2 * MINUTE_MS);
  assert.deepEqual(limiter.changed(10), [3]);
  limiter.advance(small, 3_650 * DAY_MS);
  assert.deepEqual([limiter.take(small).day.remaining, limiter.look(small).bans], [4, 0]);
  limiter.refill(other);
  assert.deepEqual([limiter.counted(other), limiter.look(other).minute.remaining], [nothing, 2]);
  assert.deepEqual(limiter.changed(10), [3, 4]);
});

it('keeps its exactness through years, a take a day or a ban', () => {
  const limiter = fresh(1);
  for (let days = 0; days < 800; days++) {
    const { day, at } = limiter.take(small);
    assert.deepEqual([day.remaining, day.endsAt - at, at], [4, DAY_MS, unix()]);
    clock.advance(DAY_MS);
  }
  take(limiter, small, 3);
  clock.advance(2 * MINUTE_MS);
  for (let left = 1; left >= 0; left--, clock.advance(DAY_MS)) assert.equal(limiter.look(small).bans, left);
});

it('keeps what it knows when it grows, and refuses a slot beyond its maximum', () => {
  const limiter = fresh(1);
  const caller = { slot: 1_023, perMinute: 1, perDay: 9 };
  take(limiter, caller, 2);
  take(limiter, { ...caller, slot: 1_000_000 }, 1);
  assert.deepEqual([limiter.look(caller).verdict, limiter.look(caller).day.remaining], ['banned', 8]);
  assert.deepEqual(limiter.changed(10), [1_023, 1_000_000]);
  assert.throws(() => limiter.take({ ...caller, slot: MAX_SLOTS }), RangeError);
});
