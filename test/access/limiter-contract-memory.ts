import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Counted, DAY_MS, type Limiter, MINUTE_MS } from '../../src/access/limits.ts';
import { SetClock } from '../../src/clock.ts';
import { copy, type MakeLimiter, small } from './limiter-tools.ts';

const nothing: Counted = { dayUsed: 0, dayEndsAt: 0, banStep: 0, banEndsAt: 0 };

export function memoryContract(name: string, make: MakeLimiter): void {
  describe(`${name}: memory across restarts`, () => {
    function restarted(limiter: Limiter, clock: SetClock, caller = small): Limiter {
      const next = make({ clock, banAfter: 1 });
      next.restore(caller, limiter.counted(caller));
      return next;
    }

    it('gives back neither the day nor a ban', () => {
      const clock = new SetClock();
      const before = make({ clock, banAfter: 1 });
      const windowEnd = clock.now() + DAY_MS;
      for (let n = 0; n < 3; n++) before.take(small);
      clock.advance(10_000);
      const after = restarted(before, clock);
      const banned = after.take(small);
      assert.deepEqual([banned.verdict, banned.retryAt], ['banned', clock.now() + 110_000]);
      assert.deepEqual(banned.day, { limit: 5, remaining: 3, endsAt: windowEnd });
      clock.advance(110_000);
      assert.deepEqual(after.bansEnded(), [3]);
      after.take(small);
      after.take(small);
      assert.equal(after.take(small).retryAt, clock.now() + 8 * MINUTE_MS, 'escalation is remembered');
    });

    it('tells nothing of what has expired, and drops it on restore', () => {
      const clock = new SetClock();
      const limiter = make({ clock, banAfter: 1 });
      for (let n = 0; n < 3; n++) limiter.take(small);
      const old = limiter.counted(small);
      clock.advance(2 * DAY_MS);
      assert.deepEqual(limiter.counted(small), nothing);
      const next = make({ clock });
      next.restore(small, old);
      assert.deepEqual(next.counted(small), nothing);
      assert.equal(next.look(small).day.remaining, 5);
      assert.deepEqual(next.changed(10), []);
      assert.deepEqual(next.bansEnded(), []);
    });

    it('does not forgive twice what was forgiven before a restart', () => {
      const clock = new SetClock();
      let limiter = make({ clock });
      const ended = clock.wall() - 2.5 * DAY_MS;
      limiter.restore(small, { ...nothing, banStep: 5, banEndsAt: ended });
      assert.deepEqual(limiter.counted(small), { ...nothing, banStep: 3, banEndsAt: ended + 2 * DAY_MS });
      limiter = restarted(limiter, clock);
      limiter = restarted(limiter, clock);
      assert.equal(limiter.counted(small).banStep, 3);
      clock.advance(DAY_MS / 2);
      assert.equal(limiter.counted(small).banStep, 2);
    });

    it('clamps ends in the far future to one window and to the longest ban of the step, and writes them anew', () => {
      const clock = new SetClock();
      const limiter = make({ clock });
      const far = clock.wall() + 400 * DAY_MS;
      limiter.restore(small, { dayUsed: 5, dayEndsAt: far, banStep: 200, banEndsAt: far });
      limiter.restore({ ...small, slot: 4 }, { dayUsed: 1, dayEndsAt: clock.wall() + 5, banStep: 1, banEndsAt: far });
      assert.equal(limiter.look(small).day.endsAt, clock.now() + DAY_MS);
      assert.equal(limiter.look(small).retryAt, clock.now() + DAY_MS);
      assert.equal(limiter.look({ ...small, slot: 4 }).retryAt, clock.now() + 2 * MINUTE_MS);
      assert.deepEqual(limiter.changed(10), [3, 4]);
      clock.advance(DAY_MS);
      assert.equal(limiter.take(small).verdict, 'admitted');
    });

    it('a jump of the wall clock changes no decision; what is written down follows it', () => {
      const clock = new SetClock();
      const limiter = make({ clock, banAfter: 1 });
      for (let n = 0; n < 3; n++) limiter.take(small);
      const before = copy(limiter.look(small));
      limiter.changed(10);
      for (const jump of [9 * DAY_MS, -40 * DAY_MS]) {
        clock.setWall(clock.wall() + jump);
        assert.deepEqual(limiter.look(small), before);
        assert.deepEqual(limiter.changed(10), [3]);
        assert.equal(limiter.counted(small).dayEndsAt, clock.wall() + DAY_MS);
        assert.deepEqual(restarted(limiter, clock).look(small).day, before.day);
      }
    });

    it('names changed callers once, never more than asked for, and again when they could not be saved', () => {
      const clock = new SetClock();
      const limiter = make({ clock });
      for (const slot of [5, 64, 31, 2_000, 5]) limiter.take({ ...small, slot });
      const first = limiter.changed(3);
      assert.equal(first.length, 3);
      limiter.take({ ...small, slot: 0 });
      const rest = limiter.changed(3);
      assert.deepEqual(
        [...first, ...rest].sort((a, b) => a - b),
        [0, 5, 31, 64, 2_000],
      );
      assert.deepEqual(limiter.changed(3), []);
      limiter.unsaved(rest);
      assert.deepEqual(limiter.changed(3).sort(), rest.sort());
    });

    it('a refusal by a limit is nothing to write down; a ban and its lifting are', () => {
      const clock = new SetClock();
      const limiter = make({ clock, banAfter: 2 });
      limiter.take(small);
      limiter.take(small);
      limiter.changed(10);
      limiter.take(small);
      assert.deepEqual(limiter.changed(10), []);
      limiter.take(small);
      assert.deepEqual(limiter.changed(10), [3]);
      limiter.lift(small);
      assert.deepEqual(limiter.changed(10), [3]);
    });
  });
}
