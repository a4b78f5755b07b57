/** The limiter of one process: what it promises. That it always counts right is in limiter-model.test.ts. */
import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { SlotLimiter } from '../../src/access/limiter.ts';
import type { Decision, Limited } from '../../src/access/limits.ts';
import { retryAfterSeconds } from '../../src/access/limits.ts';
import { steadyOffset } from '../../src/access/wall.ts';
import { DAY_MS, MINUTE_MS } from '../../src/clock.ts';
import { MAX_SLOTS, UNUSED } from '../../src/store/model.ts';
import { SetClock } from '../clock.ts';

const small: Limited = { slot: 3, perMinute: 2, perDay: 5 };

let clock: SetClock;
beforeEach(() => {
  clock = new SetClock();
});
/** Store time: even, and somewhere else than both clocks. */
const unix = () => clock.now() + 1_700_000_000_000;

/** The last of so many decisions. */
function take(limiter: SlotLimiter, caller: Limited, times = 1): Decision {
  for (let time = 1; time < times; time++) limiter.take(caller);
  return limiter.take(caller);
}

/** What remains of both windows, and how long: of the minute, of the day, until a refusal ends. */
function state({ at, minute, day, retryAt }: Decision): number[] {
  return [minute.remaining, minute.endsAt - at, day.remaining, day.endsAt - at, retryAt - at];
}

it('Retry-After is whole seconds, at least 1, with 2 ms for a timer that fires early', () => {
  const told = [-5, 0, 998, 998.5, 59_998, 60_000].map((ms) => retryAfterSeconds(1_000_000 + ms, 1_000_000));
  assert.deepEqual(told, [1, 1, 1, 2, 60, 61]);
});

it('a moment stays where it is while the clocks wobble by up to 250 ms, and follows a jump', () => {
  const offset = steadyOffset(() => clock.wall());
  const first = offset(clock.now());
  const told = [0, 250, -500, 250, DAY_MS, -251].map((jump) => {
    clock.setWall(clock.wall() + jump);
    return offset(clock.now()) - first;
  });
  assert.deepEqual(told, [0, 0, 0, 0, DAY_MS, DAY_MS - 251]);
});

describe('the limiter', () => {
  const fresh = (banAfter?: number) => new SlotLimiter({ clock, unix, banAfter });

  it('opens both windows full at the first request admitted, and ends them one length later', () => {
    const limiter = fresh();
    const free = { slot: 0, perMinute: 60, perDay: 1_000 };
    assert.deepEqual(state(take(limiter, free)), [59, MINUTE_MS, 999, DAY_MS, 0]);
    clock.advance(MINUTE_MS - 1);
    assert.deepEqual(state(take(limiter, free)), [58, 1, 998, DAY_MS - MINUTE_MS + 1, 0]);
    clock.advance(1);
    assert.deepEqual(state(take(limiter, free)), [59, MINUTE_MS, 997, DAY_MS - MINUTE_MS, 0]);
    clock.advance(DAY_MS);
    assert.deepEqual(state(limiter.look(free)), [60, 0, 1_000, 0, 0], 'one that is not open is full, and ends now');
  });

  it('admits 2N - 1 in a span of one length at the worst, and no more', () => {
    const limiter = fresh();
    const caller = { slot: 1, perMinute: 5, perDay: 100 };
    take(limiter, caller);
    clock.advance(MINUTE_MS - 1);
    assert.equal(take(limiter, caller, 4).verdict, 'admitted');
    clock.advance(1);
    assert.equal(take(limiter, caller, 5).verdict, 'admitted');
    assert.equal(take(limiter, caller).verdict, 'limited');
  });

  it('bans for 2, 8, 32, 128, 512 minutes, then a day, and forgives a step a day', () => {
    const limiter = fresh(1);
    const caller = { slot: 0, perMinute: 1, perDay: 1_000 };
    const banMinutes = () => {
      const { banBegan, retryAt, at } = take(limiter, caller, 2);
      assert.equal(banBegan, true);
      clock.advance(retryAt - at);
      return (retryAt - at) / MINUTE_MS;
    };
    for (const minutes of [2, 8, 32, 128, 512, 1_440, 1_440]) assert.equal(banMinutes(), minutes);
    clock.advance(DAY_MS - 1);
    assert.equal(banMinutes(), 1_440, 'a day is not yet over');
    clock.advance(3 * DAY_MS);
    assert.equal(banMinutes(), 128, 'three of six forgiven: the fourth comes');
    clock.advance(30 * DAY_MS);
    assert.equal(banMinutes(), 2, 'all forgiven, and never less than none');
  });

  it('writes down nothing of what has expired, drops it when it is put back, and clamps what cannot be', () => {
    const limiter = fresh(1);
    take(limiter, small, 3);
    const old = limiter.counted(small);
    clock.advance(2 * DAY_MS);
    assert.deepEqual(limiter.counted(small), UNUSED);
    const next = fresh();
    next.restore(small, old);
    assert.deepEqual([next.counted(small), next.look(small).day.remaining, next.changed(10)], [UNUSED, 5, []]);
    const far = unix() + 400 * DAY_MS;
    next.restore(small, { dayUsed: 5, dayEndsAt: far, banStep: 200, banEndsAt: far });
    const { at, day, banEndsAt, bans } = next.look(small);
    assert.deepEqual([day.endsAt - at, banEndsAt - at, bans], [DAY_MS, DAY_MS, 6]);
    next.restore(small, { ...UNUSED, dayUsed: 2 ** 31 + 5, dayEndsAt: far });
    assert.equal(next.look(small).day.remaining, 0, 'more than a row can hold is not less than nothing');
    next.restore(small, { ...UNUSED, banStep: 1, banEndsAt: far });
    assert.equal(next.look(small).banEndsAt - at, 2 * MINUTE_MS);
  });

  it('a jump of the wall clock is told within 250 ms; it changes no decision, and nothing that is written down', () => {
    const limiter = fresh(1);
    take(limiter, small, 3);
    for (const jump of [9 * DAY_MS, -40 * DAY_MS]) {
      const before = [state(limiter.look(small)), limiter.counted(small)];
      clock.setWall(clock.wall() + jump);
      assert.deepEqual([state(limiter.look(small)), limiter.counted(small)], before);
      clock.advance(250);
      assert.equal(limiter.look(small).at, clock.wall());
    }
  });

  it('names changed callers once, never more than asked for, and again when they could not be saved', () => {
    const limiter = fresh(2);
    const changed = (max = 9) => limiter.changed(max).sort((a, b) => a - b);
    for (const slot of [5, 64, 31, 2_000, 5]) limiter.take({ ...small, slot });
    assert.deepEqual([changed(3), changed(3)], [[31, 64, 2_000], [5]], 'the newest first');
    limiter.unsaved([64, 31]);
    assert.deepEqual([changed(), changed()], [[31, 64], []]);
    take(limiter, small, 2);
    const changes: [change: () => unknown, isNamed: boolean][] = [
      [() => limiter.look(small), true], // by the takes before
      [() => limiter.look(small), false],
      [() => limiter.take(small), false],
      [() => limiter.take(small), true], // a ban began
      [() => [limiter.advance(small, 1), limiter.lift(small)], true],
      [() => limiter.advance(small, 1), true],
      [() => limiter.refill(small), true],
    ];
    for (const [change, isNamed] of changes) {
      change();
      assert.deepEqual(changed(), isNamed ? [3] : [], `${change}`);
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
});
