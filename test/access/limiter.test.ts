/** What the limiter promises, and what of it outlives a restart. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { lifted, newAccount, retryAfterSeconds, take } from '../../src/access/limiter.ts';
import { MemoryLimiter } from '../../src/access/memory-limiter.ts';
import { DAY_MS, MINUTE_MS } from '../../src/clock.ts';
import { LimitHeaders } from '../../src/service/gate.ts';
import { type ApiKey, StoreError, type Usage } from '../../src/store/model.ts';
import type { Changes } from '../../src/store/tables.ts';
import { SetClock } from '../clock.ts';
import { quiet } from '../faults/life.ts';
import { memoryStore } from '../store/memory-store.ts';
import { newKey } from '../store/plain-model.ts';
import { until } from '../until.ts';
import { checkAgainstModel } from './limiter-model.ts';

const START = 1_700_000_000_000;
const SMALL = { perMinute: 2, perDay: 5 };
const key = { id: 3, ...SMALL } as ApiKey;

it('decides as its model does, whatever happens', (t) => checkAgainstModel(t, { lift: lifted }));

it('Retry-After is whole seconds, at least 1, with 2 ms for a timer that fires early', () => {
  const told = [-5, 0, 998, 998.5, 59_998, 60_000].map((ms) => retryAfterSeconds(START + ms, START));
  assert.deepEqual(told, [1, 1, 1, 2, 60, 61]);
});

it('bans for 2, 8, 32, 128, 512 minutes, then a day, and forgives a step a day', () => {
  const [account, limits] = [newAccount(), { perMinute: 1, perDay: 1_000 }];
  let now = START;
  const banMinutes = () => {
    take(account, limits, now, 1);
    const { banBegan, retryAt, at } = take(account, limits, now, 1);
    assert.equal(banBegan, true);
    now = retryAt;
    return (retryAt - at) / MINUTE_MS;
  };
  for (const minutes of [2, 8, 32, 128, 512, 1_440, 1_440]) assert.equal(banMinutes(), minutes);
  now += DAY_MS - 1;
  assert.equal(banMinutes(), 1_440, 'a day is not yet over');
  now += 3 * DAY_MS;
  assert.equal(banMinutes(), 128, 'three of six forgiven: the fourth comes');
  now += 30 * DAY_MS;
  assert.equal(banMinutes(), 2, 'all forgiven, and never less than none');
});

it('the reset in the headers stays where it is while the clocks wobble by up to 250 ms, and follows a jump', () => {
  const clock = new SetClock();
  const headers = new LimitHeaders(() => clock.wall());
  const decision = take(newAccount(), SMALL, START);
  const reset = () => {
    const list = headers.ofKey(decision);
    return Number(list[list.indexOf('X-RateLimit-Reset') + 1]);
  };
  const first = reset();
  assert.equal(first, clock.wall() / 1_000 + 60);
  const told = [0, 250, -500, 250, DAY_MS].map((jump) => {
    clock.setWall(clock.wall() + jump);
    return reset() - first;
  });
  assert.deepEqual(told, [0, 0, 0, 0, DAY_MS / 1_000]);
});

/** A store whose writes of usage are seen, and may fail. */
function recorded() {
  const clock = new SetClock();
  const rows: Usage[] = [];
  const warned: unknown[] = [];
  let failure: StoreError | undefined;
  const onBatch = (changes: Changes) => {
    if (failure !== undefined) throw failure;
    for (const { name, rows: changed } of changes) {
      if (name === 'usage') rows.push(...changed.flatMap(({ id, row }) => (id === 3 ? (row as Usage) : [])));
    }
  };
  const store = memoryStore({ clock, onBatch });
  const log = { info: () => {}, warn: (...line: unknown[]) => warned.push(line), error: () => {} };
  const open = (usage?: Usage[]) => new MemoryLimiter(store, { clock, log, banAfter: 2 }, usage);
  return { clock, rows, warned, open, fail: (error?: StoreError) => (failure = error) };
}

it('what was counted is written once, and a restart gives nothing back', async () => {
  const { clock, rows, open } = recorded();
  const limiter = open();
  for (let n = 0; n < 4; n++) limiter.take(key);
  await limiter.write();
  assert.equal(rows.length, 1);
  limiter.take(key); // banned: nothing is counted
  await limiter.write();
  assert.equal(rows.length, 1);
  await limiter.close();
  const next = open(rows);
  assert.deepEqual({ ...next.look(key) }, { ...limiter.look(key) });
  assert.deepEqual([next.look(key).verdict, next.look(key).day.remaining], ['banned', 3]);
  clock.advance(2 * MINUTE_MS);
  assert.equal(next.take(key).verdict, 'admitted');
  await next.close();
  assert.equal(rows.at(-1)?.dayUsed, 3);
});

it('a key that is in use all the time is written once a time, and again at the next', async () => {
  const { rows, open } = recorded();
  const limiter = open();
  const busy = { ...key, perMinute: 1e6, perDay: 1e6 };
  limiter.take(busy);
  const takes = setInterval(() => limiter.take(busy));
  for (let n = 1; n <= 3; n++) {
    const written = limiter.write();
    limiter.take(busy);
    await written;
    assert.equal(rows.length, n);
  }
  clearInterval(takes);
  await limiter.close();
});

it('usage that cannot be written is written later, and that is told once', async () => {
  const { rows, warned, open, fail } = recorded();
  const limiter = open();
  limiter.take(key);
  fail(new StoreError('full', 'no room'));
  await limiter.write();
  await limiter.write();
  assert.deepEqual([rows.length, warned.length], [0, 1]);
  await assert.rejects(limiter.lift(key), StoreError);
  fail(undefined);
  await limiter.close();
  assert.equal(rows[0].minuteUsed, 1);
});

it('a lift is durable when it resolves, and forgets no request that was counted meanwhile', async () => {
  const { rows, open } = recorded();
  const limiter = open();
  for (let n = 0; n < 4; n++) limiter.take(key);
  assert.equal(limiter.take(key).verdict, 'banned');
  const lifting = limiter.lift(key);
  assert.equal(limiter.take(key).verdict, 'banned', 'not before it is durable');
  await lifting;
  assert.deepEqual([rows.at(-1)?.banEndsAt, limiter.look(key).verdict], [0, 'limited']);
  await limiter.close();

  const again = open();
  again.take(key);
  const second = again.lift(key);
  assert.equal(again.take(key).verdict, 'admitted');
  await second;
  assert.deepEqual([again.look(key).minute.remaining, again.look(key).day.remaining], [0, 3]);
  await again.close();
});

it('what was counted is put after a second, so that a crash loses no more', async (t) => {
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

it('strikes and a ban are put also where no request was admitted since the last row', async () => {
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
