import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SlotLimiter } from '../../src/access/limiter.ts';
import { SetClock } from '../../src/clock.ts';
import { UsageRecorder } from '../../src/operator/usage.ts';
import type { FileStore } from '../../src/store/store.ts';

test('the end of a ban has a line in the log, once', async () => {
  const clock = new SetClock();
  const limiter = new SlotLimiter({ clock, banAfter: 1 });
  const key = { id: 'k1', slot: 0, perMinute: 1, perDay: 10 };
  const store = {
    read: { key: () => key, usage: () => undefined },
    write: async (decide: () => unknown) => decide(),
  } as unknown as FileStore;
  const lines: unknown[] = [];
  const line = (message: string, fields?: unknown) => void lines.push([message, fields]);
  const usage = new UsageRecorder({ store, limiter, clock }, { info: line, warn: line, error: line, access: () => {} });
  for (let i = 0; i < 2; i++) limiter.take(key);
  await usage.record();
  assert.deepEqual([lines, usage.bans], [[], 1]);
  clock.advance(120_000);
  await usage.record();
  await usage.record();
  assert.deepEqual(lines, [['a ban ended', { key: 'k1' }]]);
});
