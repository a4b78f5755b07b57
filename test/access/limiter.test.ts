/** The limiter of one process: what it promises. */
import assert from 'node:assert/strict';
import { beforeEach, it } from 'node:test';
import { SlotLimiter } from '../../src/access/limiter.ts';
import type { Decision, Limited, Looked } from '../../src/access/limits.ts';
import { DAY_MS, MINUTE_MS, retryAfterSeconds } from '../../src/access/limits.ts';
import { MAX_SLOTS, UNUSED } from '../../src/store/model.ts';
import { SetClock } from '../clock.ts';

const free: Limited = { slot: 0, perMinute: 60, perDay: 1_000 };
const small: Limited = { slot: 3, perMinute: 2, perDay: 5 };

let clock: SetClock;
beforeEach(() => {
  clock = new SetClock();
});
/** Store time: even, and somewhere else than both clocks. */
const unix = () => clock.now() + 1_700_000_000_000;
const fresh = (banAfter?: number) => new SlotLimiter({ clock, unix, banAfter });

/** The last of so many decisions. */
function take(limiter: SlotLimiter, caller: Limited, times = 1): Decision {
  for (let time = 1; time < times; time++) limiter.take(caller);
  return limiter.take(caller);
}

/** Moments as they lie from now: clocks differ. */
function fromNow<D extends Decision | Looked>(decision: D): D {
  const { at, minute, day, retryAt } = decision;
  const [minuteFromNow, dayFromNow] = [minute, day].map((window) => ({ ...window, endsAt: window.endsAt - at }));
  const told = { ...decision, at: 0, minute: minuteFromNow, day: dayFromNow, retryAt: retryAt - at };
  return 'banEndsAt' in told && told.banEndsAt !== 0 ? { ...told, banEndsAt: told.banEndsAt - at } : told;
}

it('admits 60 of 61 requests 20 ms apart', () => {
  const limiter = fresh();
  const verdicts: string[] = [];
  for (let n = 0; n < 61; n++, clock.advance(20)) verdicts.push(take(limiter, free).verdict);
  assert.deepEqual(verdicts, [...Array(60).fill('admitted'), 'limited']);
});

it('opens both windows full at the first request admitted, and ends them one length later', () => {
  const limiter = fresh();
  const first = fromNow(take(limiter, free));
  assert.deepEqual(first.minute, { limit: 60, remaining: 59, endsAt: MINUTE_MS });
  assert.deepEqual(first.day, { limit: 1_000, remaining: 999, endsAt: DAY_MS });
  clock.advance(MINUTE_MS - 1);
  assert.equal(take(limiter, free).minute.remaining, 58);
  clock.advance(1);
  const next = fromNow(take(limiter, free));
  assert.deepEqual(next.minute, { limit: 60, remaining: 59, endsAt: MINUTE_MS });
  assert.deepEqual(next.day, { limit: 1_000, remaining: 997, endsAt: DAY_MS - MINUTE_MS });
  clock.advance(DAY_MS);
  const { minute, day } = fromNow(limiter.look(free));
  const full = [minute, day].map(({ limit, remaining, endsAt }) => remaining === limit && endsAt === 0);
  assert.deepEqual(full, [true, true], 'a window that is not open is full, and ends now');
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

it('bans at 5 times the limit a minute, for 2 minutes, and says so once', () => {
  const limiter = fresh();
  assert.equal(take(limiter, small, 11).verdict, 'limited');
  assert.equal(limiter.look(small).strikes, 9);
  const tenth = fromNow(take(limiter, small));
  assert.deepEqual([tenth.verdict, tenth.banBegan, tenth.retryAt], ['banned', true, 2 * MINUTE_MS]);
  clock.advance(2 * MINUTE_MS - 1);
  const during = fromNow(take(limiter, small, 50));
  assert.deepEqual([during.verdict, during.banBegan, during.retryAt], ['banned', false, 1]);
  assert.deepEqual([during.minute.remaining, during.day.remaining], [2, 3], 'both windows as they stand');
  clock.advance(1);
  assert.equal(take(limiter, small).verdict, 'admitted');
  const { strikes, bans, banEndsAt } = limiter.look(small);
  assert.deepEqual([strikes, bans, banEndsAt], [0, 1, 0]);
});

it('gives strikes of a used-up day a minute of their own, which is no window', () => {
  const limiter = fresh();
  const caller = { slot: 0, perMinute: 9, perDay: 1 };
  take(limiter, caller);
  clock.advance(DAY_MS - 1);
  assert.equal(take(limiter, caller).verdict, 'limited');
  assert.equal(limiter.look(caller).strikes, 1);
  clock.advance(1);
  const { verdict, minute } = fromNow(take(limiter, caller));
  assert.deepEqual([verdict, minute.endsAt], ['admitted', MINUTE_MS], 'a whole minute, not theirs');
  assert.equal(limiter.look(caller).strikes, 0);
});

it('bans for 2, 8, 32, 128, 512 minutes, then a day, and forgives a step a day', () => {
  const limiter = fresh(1);
  const caller = { slot: 0, perMinute: 1, perDay: 1_000 };
  const banMinutes = () => {
    const banned = fromNow(take(limiter, caller, 2));
    assert.equal(banned.banBegan, true);
    clock.advance(banned.retryAt);
    return banned.retryAt / MINUTE_MS;
  };
  for (const minutes of [2, 8, 32, 128, 512, 1_440, 1_440]) assert.equal(banMinutes(), minutes);
  clock.advance(DAY_MS - 1);
  assert.equal(banMinutes(), 1_440, 'a day is not yet over');
  clock.advance(3 * DAY_MS);
  assert.equal(banMinutes(), 128, 'three of six forgiven: the fourth comes');
  clock.advance(30 * DAY_MS);
  assert.equal(banMinutes(), 2, 'all forgiven, and never less than none');
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
  assert.deepEqual(limiter.counted(small), UNUSED);
  const next = fresh();
  next.restore(small, old);
  assert.deepEqual([next.counted(small), next.look(small).day.remaining, next.changed(10)], [UNUSED, 5, []]);
  const far = unix() + 400 * DAY_MS;
  next.restore(small, { dayUsed: 5, dayEndsAt: far, banStep: 200, banEndsAt: far });
  const { at, day, banEndsAt, bans } = next.look(small);
  assert.deepEqual([day.endsAt - at, banEndsAt - at, bans], [DAY_MS, DAY_MS, 6]);
  next.restore(small, { ...UNUSED, banStep: 1, banEndsAt: far });
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
