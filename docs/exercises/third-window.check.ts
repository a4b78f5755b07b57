/** `node --import tsx --test docs/exercises/third-window.check.ts` */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SlotLimiter } from '../../src/access/limiter.ts';
import { DAY_MS, MINUTE_MS } from '../../src/clock.ts';
import { SetClock } from '../../test/clock.ts';
import { attempt } from './attempt.ts';

const { HOUR_MS, HourLimiter } = await attempt<typeof import('./third-window.ts')>('third-window');

const caller = { slot: 0, perMinute: 2, perHour: 3, perDay: 100 };

function fresh() {
  const clock = new SetClock(1_000); // both of its times are the same: the limiter tells moments in unix ms
  const minuteAndDay = new SlotLimiter({ clock, unix: () => clock.now(), banAfter: 0 });
  return { clock, minuteAndDay, limiter: new HourLimiter(clock, minuteAndDay) };
}

describe('third-window', () => {
  it('refuses the fourth request of an hour, and takes nothing of the minute and the day for it', () => {
    const { clock, minuteAndDay, limiter } = fresh();
    const end = clock.now() + HOUR_MS;
    for (let n = 0; n < 3; n++, clock.advance(MINUTE_MS)) {
      assert.equal(limiter.take(caller).isAdmitted, true, `request ${n + 1} of 3 that the hour has`);
    }
    assert.deepEqual(limiter.take(caller), { isAdmitted: false, retryAt: end }, 'the fourth');
    const { minute, day } = minuteAndDay.look(caller);
    assert.deepEqual([minute.remaining, day.remaining], [2, 97], 'what is left of the minute and the day');
  });

  it('takes nothing of the hour when the minute refuses', () => {
    const { clock, limiter } = fresh();
    const verdicts = [1, 2, 3, 4].map(() => limiter.take(caller).isAdmitted);
    assert.deepEqual(verdicts, [true, true, false, false], 'four at once, two a minute');
    clock.advance(MINUTE_MS);
    assert.equal(limiter.take(caller).isAdmitted, true, 'the third of this hour');
  });

  it('begins its hour with the first request admitted, not with one refused', () => {
    const { clock, minuteAndDay, limiter } = fresh();
    const once = { ...caller, perMinute: 1, perHour: 1 };
    minuteAndDay.take(once);
    assert.equal(limiter.take(once).isAdmitted, false, 'the minute is used up');
    clock.advance(MINUTE_MS);
    assert.equal(limiter.take(once).isAdmitted, true, 'the first of the hour, after one that the minute refused');
    assert.equal(limiter.take(once).retryAt, clock.now() + HOUR_MS, 'the end of an hour that begins now');
  });

  it('admits whoever waits as told, when the hour and the day refuse together', () => {
    const { clock, limiter } = fresh();
    const end = clock.now() + DAY_MS;
    const few = { ...caller, perHour: 2, perDay: 2 };
    assert.deepEqual([limiter.take(few).isAdmitted, limiter.take(few).isAdmitted], [true, true], 'two of two');
    assert.deepEqual(limiter.take(few), { isAdmitted: false, retryAt: end }, 'the day ends last');
  });
});
