/** A thousand waits in real time: whoever waits exactly as long as `Retry-After` says is admitted. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { SlotLimiter } from '../../src/access/limiter.ts';
import { retryAfterSeconds } from '../../src/access/limits.ts';
import { systemClock } from '../../src/clock.ts';

const CLIENTS = 100;
const WAITS_PER_CLIENT = 10;
/** What is left of the minute when a client is refused: it is told 1 s, and its timer has only the formula's slack. */
const LEFT_MS = 998;

it('1,000 clients that wait exactly Retry-After are admitted', async (t) => {
  let waits = 0;
  let narrowestMs = Number.POSITIVE_INFINITY;

  /** Each has a clock of its own, set forward once a minute has begun. In the waits it is as real as any. */
  async function client(): Promise<void> {
    let skippedMs = 0;
    const clock = { ...systemClock, now: () => systemClock.now() + skippedMs };
    const limiter = new SlotLimiter({ clock, unix: clock.now, banAfter: 0 });
    const caller = { slot: 0, perMinute: 1, perDay: 1_000 };
    await sleep(Math.random() * 1_000);
    assert.equal(limiter.take(caller).verdict, 'admitted');
    while (waits < CLIENTS * WAITS_PER_CLIENT) {
      skippedMs += limiter.look(caller).retryAt - clock.now() - LEFT_MS;
      const { verdict, retryAt, at } = limiter.take(caller);
      assert.equal(verdict, 'limited');
      waits++;
      await sleep(1_000 * retryAfterSeconds(retryAt, at));
      narrowestMs = Math.min(narrowestMs, clock.now() - retryAt);
      assert.equal(limiter.take(caller).verdict, 'admitted');
    }
  }

  await Promise.all(Array.from({ length: CLIENTS }, client));
  assert.ok(waits >= CLIENTS * WAITS_PER_CLIENT);
  t.diagnostic(`${waits} waits; the narrowest came ${narrowestMs.toFixed(3)} ms after the end of its window`);
});
