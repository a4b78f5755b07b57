import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { DAY_MS, MINUTE_MS, retryAfterSeconds } from '../../src/access/limits.ts';
import { copy, fresh, type MakeLimiter, small, takes, useUpDay } from './limiter-tools.ts';

export function bansContract(name: string, make: MakeLimiter): void {
  describe(`${name}: strikes and bans`, () => {
    it('bans at 5 times the limit a minute for 2 minutes, and says so once', () => {
      const { clock, limiter } = fresh(make);
      takes(limiter, small, 2);
      const ninth = takes(limiter, small, 9);
      assert.deepEqual([ninth.verdict, ninth.banBegan, limiter.strikes(small)], ['limited', false, 9]);
      const tenth = copy(limiter.take(small));
      assert.deepEqual([tenth.verdict, tenth.banBegan], ['banned', true]);
      assert.equal(tenth.retryAt, clock.now() + 2 * MINUTE_MS);
      assert.equal(limiter.take(small).banBegan, false);
      assert.equal(limiter.take(small).verdict, 'banned');
    });

    it('takes an absolute number of strikes, and never bans with 0', () => {
      const { limiter } = fresh(make, 1);
      assert.equal(takes(limiter, small, 3).verdict, 'banned');
      const never = fresh(make, 0);
      assert.equal(takes(never.limiter, small, 500).verdict, 'limited');
    });

    it('neither counts nor extends when asked during a ban', () => {
      const { clock, limiter } = fresh(make, 1);
      const began = takes(limiter, small, 3);
      clock.advance(2 * MINUTE_MS - 1);
      const during = takes(limiter, small, 50);
      assert.deepEqual([during.verdict, during.retryAt], ['banned', began.retryAt]);
      assert.equal(limiter.strikes(small), 0);
      clock.advance(1);
      const after = limiter.take(small);
      assert.deepEqual([after.verdict, after.minute.remaining, after.day.remaining], ['admitted', 1, 2]);
    });

    it('forgets strikes when the minute ends', () => {
      const { clock, limiter } = fresh(make, 3);
      takes(limiter, small, 4);
      assert.equal(limiter.strikes(small), 2);
      clock.advance(MINUTE_MS);
      assert.equal(limiter.strikes(small), 0);
      assert.equal(takes(limiter, small, 4).verdict, 'limited');
      assert.equal(limiter.strikes(small), 2);
    });

    it('forgets strikes of a used-up day a minute after the first of them', () => {
      const { clock, limiter } = fresh(make, 3);
      useUpDay(clock, limiter, small);
      takes(limiter, small, 1);
      clock.advance(MINUTE_MS - 1);
      takes(limiter, small, 1);
      assert.equal(limiter.strikes(small), 2);
      clock.advance(1);
      assert.equal(limiter.strikes(small), 0);
    });

    it('a minute of strikes alone is no window: the first request admitted opens a whole one', () => {
      const { clock, limiter } = fresh(make, 3);
      useUpDay(clock, limiter, small);
      clock.advance(DAY_MS - small.perDay * MINUTE_MS - 1);
      assert.equal(limiter.take(small).verdict, 'limited');
      clock.advance(1);
      const admitted = limiter.take(small);
      assert.deepEqual([admitted.verdict, admitted.minute.endsAt], ['admitted', clock.now() + MINUTE_MS]);
      assert.equal(limiter.strikes(small), 0);
    });

    it('escalates 2, 8, 32, 128, 512 minutes to a day, and forgives a step a day', () => {
      const { clock, limiter } = fresh(make, 1);
      const caller = { slot: 0, perMinute: 1, perDay: 1_000 };
      function banMinutes(): number {
        limiter.take(caller);
        const banned = limiter.take(caller);
        assert.equal(banned.banBegan, true);
        const left = banned.retryAt - clock.now();
        clock.advance(left);
        return left / MINUTE_MS;
      }
      assert.deepEqual([1, 2, 3, 4, 5, 6, 7].map(banMinutes), [2, 8, 32, 128, 512, 1_440, 1_440]);
      clock.advance(DAY_MS - 1);
      assert.equal(banMinutes(), 1_440, 'a day is not yet over');
      clock.advance(3 * DAY_MS);
      assert.equal(limiter.counted(caller).banStep, 3);
      assert.equal(banMinutes(), 128, 'three of six forgiven: the fourth comes');
      clock.advance(30 * DAY_MS);
      assert.equal(banMinutes(), 2, 'all forgiven, and never less than none');
    });

    it('waits for a used-up day that outlasts the ban, so that who waits is admitted', () => {
      const { clock, limiter } = fresh(make, 1);
      useUpDay(clock, limiter, small);
      const banned = limiter.take(small);
      assert.equal(banned.verdict, 'banned');
      clock.advance(1_000 * retryAfterSeconds(banned.retryAt, clock.now()));
      assert.equal(limiter.take(small).verdict, 'admitted');
    });

    it('lifts a ban with its strikes and its escalation', () => {
      const { clock, limiter } = fresh(make, 1);
      takes(limiter, small, 3);
      limiter.lift(small);
      assert.equal(limiter.look(small).verdict, 'limited', 'the window is not given back');
      assert.equal(limiter.counted(small).banStep, 0);
      clock.advance(2 * MINUTE_MS);
      assert.deepEqual(limiter.bansEnded(), []);
      assert.equal(takes(limiter, small, 3).retryAt, clock.now() + 2 * MINUTE_MS);
    });

    it('names every ban that ended, once', () => {
      const { clock, limiter } = fresh(make, 1);
      takes(limiter, small, 3);
      clock.advance(1);
      takes(limiter, { ...small, slot: 70 }, 3);
      clock.advance(2 * MINUTE_MS - 2);
      assert.deepEqual(limiter.bansEnded(), []);
      clock.advance(1);
      assert.deepEqual(limiter.bansEnded(), [3]);
      assert.deepEqual(limiter.bansEnded(), []);
      clock.advance(1);
      assert.deepEqual(limiter.bansEnded(), [70]);
    });
  });
}
