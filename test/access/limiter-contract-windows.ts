import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { DAY_MS, MINUTE_MS, retryAfterSeconds } from '../../src/access/limits.ts';
import { copy, free, fresh, type MakeLimiter, small, takes, useUpDay } from './limiter-tools.ts';

export function windowsContract(name: string, make: MakeLimiter): void {
  describe(`${name}: windows`, () => {
    it('admits 60 of 61 requests 20 ms apart', () => {
      const { clock, limiter } = fresh(make);
      const verdicts: string[] = [];
      for (let n = 0; n < 61; n++, clock.advance(20)) verdicts.push(limiter.take(free).verdict);
      assert.deepEqual(verdicts, [...Array(60).fill('admitted'), 'limited']);
    });

    it('opens both windows full at the first request admitted, and ends them one length later', () => {
      const { clock, limiter } = fresh(make);
      const start = clock.now();
      const first = copy(limiter.take(free));
      assert.deepEqual(first.minute, { limit: 60, remaining: 59, endsAt: start + MINUTE_MS });
      assert.deepEqual(first.day, { limit: 1_000, remaining: 999, endsAt: start + DAY_MS });
      clock.advance(MINUTE_MS - 1);
      assert.equal(limiter.take(free).minute.remaining, 58);
      clock.advance(1);
      const next = limiter.take(free);
      assert.deepEqual(next.minute, { limit: 60, remaining: 59, endsAt: clock.now() + MINUTE_MS });
      assert.deepEqual(next.day, { limit: 1_000, remaining: 997, endsAt: start + DAY_MS });
    });

    it('shows a window that is not open as full and ending now', () => {
      const { clock, limiter } = fresh(make);
      limiter.take(free);
      clock.advance(DAY_MS);
      const seen = limiter.look(free);
      assert.deepEqual(seen.minute, { limit: 60, remaining: 60, endsAt: clock.now() });
      assert.deepEqual(seen.day, { limit: 1_000, remaining: 1_000, endsAt: clock.now() });
    });

    it('takes nothing from the minute when the day refuses', () => {
      const { clock, limiter } = fresh(make);
      useUpDay(clock, limiter, small);
      const refused = limiter.take(small);
      assert.equal(refused.verdict, 'limited');
      assert.deepEqual(refused.minute, { limit: 2, remaining: 2, endsAt: clock.now() });
      assert.equal(refused.binding, 'day');
    });

    it('takes nothing from the day when the minute refuses', () => {
      const { limiter } = fresh(make);
      const refused = takes(limiter, small, 3);
      assert.equal(refused.verdict, 'limited');
      assert.equal(refused.binding, 'minute');
      assert.equal(refused.day.remaining, 3);
    });

    it('takes the whole cost or nothing', () => {
      const { limiter } = fresh(make);
      assert.equal(limiter.take(free, 59).minute.remaining, 1);
      const refused = limiter.take(free, 2);
      assert.deepEqual([refused.verdict, refused.minute.remaining, refused.day.remaining], ['limited', 1, 941]);
      assert.equal(limiter.take(free, 1).verdict, 'admitted');
    });

    it('looks without taking or striking, and answers as a take would', () => {
      const { limiter } = fresh(make);
      takes(limiter, small, 2);
      assert.equal(limiter.look(small).verdict, 'limited');
      assert.equal(limiter.strikes(small), 0);
      assert.equal(limiter.look({ ...small, slot: 900 }).verdict, 'admitted');
      assert.deepEqual(limiter.changed(10), [3]);
    });

    it('keeps callers apart', () => {
      const { limiter } = fresh(make);
      takes(limiter, small, 3);
      assert.equal(limiter.take({ ...small, slot: 2 }).minute.remaining, 1);
      assert.equal(limiter.take({ ...small, slot: 100_000 }).minute.remaining, 1);
    });

    it('keeps what is used when the limits change', () => {
      const { limiter } = fresh(make);
      takes(limiter, free, 10);
      const raised = limiter.look({ slot: 0, perMinute: 300, perDay: 10_000 });
      assert.deepEqual([raised.minute.remaining, raised.day.remaining], [290, 9_990]);
      const lowered = limiter.take({ slot: 0, perMinute: 5, perDay: 20 });
      assert.deepEqual([lowered.verdict, lowered.minute.remaining, lowered.day.remaining], ['limited', 0, 10]);
      assert.equal(limiter.take(free).minute.remaining, 49);
    });
  });

  describe(`${name}: which window the headers describe, and when to come back`, () => {
    it('the one with the fewest remaining; on a tie the one that resets later', () => {
      const { clock, limiter } = fresh(make);
      assert.equal(limiter.look({ slot: 0, perMinute: 5, perDay: 6 }).binding, 'minute');
      assert.equal(limiter.look({ slot: 0, perMinute: 6, perDay: 5 }).binding, 'day');
      assert.equal(limiter.take({ slot: 0, perMinute: 6, perDay: 6 }).binding, 'day');
      clock.advance(DAY_MS - 1);
      // The day ends in 1 ms, the minute that opens now in 60 s.
      const tied = limiter.take({ slot: 0, perMinute: 5, perDay: 6 });
      assert.deepEqual([tied.minute.remaining, tied.day.remaining, tied.binding], [4, 4, 'minute']);
    });

    it('the one that refused; of two the one that resets later', () => {
      const { clock, limiter } = fresh(make);
      const caller = { slot: 0, perMinute: 2, perDay: 2 };
      assert.equal(takes(limiter, caller, 3).binding, 'day');
      clock.advance(DAY_MS - 1);
      limiter.take({ ...caller, perDay: 4 });
      limiter.take({ ...caller, perDay: 4 });
      const both = limiter.take({ ...caller, perDay: 4 });
      assert.deepEqual([both.binding, both.retryAt], ['minute', clock.now() + MINUTE_MS]);
    });

    it('who waits exactly Retry-After is admitted, and it is at least 1', () => {
      const { clock, limiter } = fresh(make);
      takes(limiter, small, 2);
      for (const [wait, told] of [
        [1, 61],
        [59_990, 1],
      ]) {
        clock.advance(wait);
        assert.equal(retryAfterSeconds(limiter.take(small).retryAt, clock.now()), told);
      }
      clock.advance(1_000);
      assert.equal(limiter.take(small).verdict, 'admitted');
    });

    it('rounds the wait up with 2 ms to spare for a timer that fires early', () => {
      assert.equal(retryAfterSeconds(60_000, 0), 61);
      assert.equal(retryAfterSeconds(59_998, 0), 60);
      assert.equal(retryAfterSeconds(59_998.5, 0), 61);
      assert.equal(retryAfterSeconds(0, 5_000), 1);
    });
  });
}
