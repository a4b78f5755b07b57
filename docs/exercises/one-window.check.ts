/** `node --import tsx --test docs/exercises/one-window.check.ts` */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { retryAfterSeconds } from '../../src/access/limits.ts';
import { MINUTE_MS } from '../../src/clock.ts';
import { SetClock } from '../../test/clock.ts';
import { attempt } from './attempt.ts';

const { OneWindow } = await attempt<typeof import('./one-window.ts')>('one-window');

function fresh(limit = 60) {
  const clock = new SetClock();
  return { clock, window: new OneWindow(clock, limit) };
}

describe('one-window', () => {
  it('admits 60 of 61 requests 20 ms apart', () => {
    const { clock, window } = fresh();
    let admitted = 0;
    for (let n = 0; n < 61; n++, clock.advance(20)) if (window.take().isAdmitted) admitted++;
    assert.equal(admitted, 60, 'how many of the 61 were admitted');
  });

  it('says what is left in whole numbers, and names one moment for the reset', () => {
    const { clock, window } = fresh();
    const end = clock.now() + MINUTE_MS;
    for (let left = 59; left >= 0; left--, clock.advance(700)) {
      const expected = { isAdmitted: true, limit: 60, remaining: left, endsAt: end };
      assert.deepEqual(window.take(), expected, `the request after which ${left} are left; a limit of 60`);
    }
  });

  it('is full again when that moment has come, and not a millisecond earlier', () => {
    const { clock, window } = fresh(2);
    window.take();
    window.take();
    clock.advance(MINUTE_MS - 1);
    assert.equal(window.take().isAdmitted, false, 'admitted, a millisecond before the end of the minute');
    clock.advance(1);
    assert.deepEqual([window.take().remaining, window.take().remaining], [1, 0], 'what is left after its end; of 2');
  });

  it('begins with the first request admitted, however long nobody asked before', () => {
    const { clock, window } = fresh();
    for (const idleMs of [45_000, 10 * MINUTE_MS]) {
      clock.advance(idleMs);
      assert.equal(window.take().endsAt, clock.now() + MINUTE_MS, `the end, when nobody had asked for ${idleMs} ms`);
    }
  });

  it('admits whoever waits as long as Retry-After says', () => {
    const { clock, window } = fresh(1);
    window.take();
    clock.advance(12_345);
    const refused = window.take();
    assert.deepEqual(
      [refused.isAdmitted, refused.remaining],
      [false, 0],
      'whether the second of 1 is admitted; what is left',
    );
    clock.advance(1_000 * retryAfterSeconds(refused.endsAt, clock.now()));
    assert.equal(window.take().isAdmitted, true, 'admitted, after waiting as told');
  });
});
