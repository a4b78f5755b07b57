/** A thousand waits in real time: whoever waits exactly as long as `Retry-After` says is admitted. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { SlotLimiter } from '../../src/access/limiter.ts';
import { retryAfterSeconds } from '../../src/access/limits.ts';
import { systemClock } from '../../src/clock.ts';

const CLIENTS = 100;
const WAITS_PER_CLIENT = 10;
/** So that a refusal at once is told 1 s, and the timer has nothing to spare but the slack of the formula. */
const WINDOW_MS = 998;

it('1,000 clients that wait exactly Retry-After are admitted', async (t) => {
  const limiter = new SlotLimiter({ clock: systemClock, banAfter: 0, minuteMs: WINDOW_MS });
  let waits = 0;
  let narrowestMs = Number.POSITIVE_INFINITY;

  async function client(slot: number): Promise<void> {
    const caller = { slot, perMinute: 1, perDay: 1_000 };
    await sleep(Math.random() * 1_000);
    assert.equal(limiter.take(caller).verdict, 'admitted');
    while (waits < CLIENTS * WAITS_PER_CLIENT) {
      const { verdict, retryAt } = limiter.take(caller);
      assert.equal(verdict, 'limited');
      waits++;
      await sleep(1_000 * retryAfterSeconds(retryAt, systemClock.now()));
      narrowestMs = Math.min(narrowestMs, systemClock.now() - retryAt);
      assert.equal(limiter.take(caller).verdict, 'admitted');
    }
  }

  await Promise.all(Array.from({ length: CLIENTS }, (_, slot) => client(slot)));
  assert.ok(waits >= CLIENTS * WAITS_PER_CLIENT);
  t.diagnostic(`${waits} waits; the narrowest came ${narrowestMs.toFixed(3)} ms after the end of its window`);
});
