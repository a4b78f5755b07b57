/** What the limiter of one process puts into the store: all that outlives a restart. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MemoryLimiter } from '../../src/access/memory-limiter.ts';
import { SetClock } from '../clock.ts';
import { quiet } from '../faults/life.ts';
import { memoryStore } from '../store/memory-store.ts';
import { newKey } from '../store/plain-model.ts';
import { until } from '../until.ts';

const MINUTE_MS = 60_000;

test('what was counted is put after a second, so that a crash loses no more', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const clock = new SetClock();
  const store = memoryStore({ clock });
  const key = await store.write((tx) => tx.keys.add(newKey('a')));
  const limiter = new MemoryLimiter(store, { clock, log: quiet });
  for (const used of [1, 2]) {
    limiter.take(key);
    t.mock.timers.tick(1_000);
    await until(() => store.read.usage.get(key.id)?.dayUsed === used);
  }
  await limiter.close();
});

test('strikes and a ban are put also where no request was admitted since the last row', async () => {
  const clock = new SetClock();
  const store = memoryStore({ clock });
  const open = () => new MemoryLimiter(store, { clock, log: quiet, banAfter: 3 }, store.read.usage.all());
  const key = await store.write((tx) => tx.keys.add(newKey('a', { perMinute: 1 })));
  const limiter = open();
  for (const verdict of ['admitted', 'limited', 'limited', 'banned']) {
    assert.equal(limiter.take(key).verdict, verdict);
    await limiter.write();
    const next = open(); // as after a kill
    assert.deepEqual(next.look(key), limiter.look(key), verdict);
    await next.close();
  }
  const { banEndsAt } = store.read.usage.get(key.id)!;
  assert.ok(banEndsAt > store.now() + MINUTE_MS);
  assert.equal(limiter.take(key).verdict, 'banned');
  await limiter.close();
});
