/** Of what is bounded in all, each thread has its part; and no thread waits for another without an end. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import type { App } from '../../src/app.ts';
import { systemClock } from '../../src/clock.ts';
import type { Engine } from '../../src/engine.ts';
import { Connections } from '../../src/http/connections.ts';
import type { Logger } from '../../src/operator/logging.ts';
import type { ServeSettings } from '../../src/operator/options.ts';
import type { Store } from '../../src/store/model.ts';
import { SharedLimiter } from '../../src/threads/limiter.ts';
import { lock, newMemory } from '../../src/threads/memory.ts';
import { Team } from '../../src/threads/team.ts';
import { assertError } from '../raw.ts';
import { serviceFor } from '../service.ts';
import { withStore } from '../store/opened.ts';

const MAX_LOCK_WAIT_MS = 10_000;
const MAX_LATE_MS = 1_000;
const MAX_COUNTS_MS = 1_000;
const MAX_SPINS = 100;

const of = (threads?: number) =>
  new Connections(createServer(), { begin() {}, now: () => 0, maxConnections: 10, threads });

test('four threads have a quarter each of what may be unanswered, unsent, and under way as bodies', () => {
  const [alone, one] = [of(), of(4)];
  const both = [alone, one];
  for (const thread of both) thread.unanswered = 5_001;
  assert.deepEqual(
    both.map(({ areFull }) => areFull),
    [false, true],
  );
  for (const thread of both) Object.assign(thread, { unanswered: 0, unsent: 16 * 1024 * 1024 + 1 });
  assert.deepEqual(
    both.map(({ areFull }) => areFull),
    [false, true],
  );
  for (const thread of both) Object.assign(thread, { unanswered: 5_000, unsent: 16 * 1024 * 1024 });
  assert.deepEqual(
    both.map(({ areFull }) => areFull),
    [false, false],
  );
  const givenUp = both.map((thread) => {
    let count = 0;
    for (let i = 0; i < 20; i++) {
      const giveUp = () => {
        count++;
        thread.letGo(body);
      };
      const body = { giveUp };
      thread.hold(body, 1024 * 1024);
    }
    return count;
  });
  assert.deepEqual(givenUp, [0, 4]);
});

/** The threads of a team of two: the second is no service, but `deaf.mjs`. */
async function withDeaf(t: TestContext, store: Store) {
  const [, program] = process.argv;
  t.after(() => (process.argv[1] = program));
  process.argv[1] = join(import.meta.dirname, 'deaf.mjs'); // what a thread runs
  const deaths: unknown[] = [];
  const onDeath = (error: unknown) => deaths.push(error);
  const settings = { threads: 2, metrics: { host: '127.0.0.1', port: 0 } } as ServeSettings;
  const team = new Team({ settings, clock: systemClock, log: {} as Logger, onDeath });
  t.after(() => team.drain(0));
  await team.load({ app: {} as App, store, at: { host: '127.0.0.1', port: 0 }, url: '' });
  return { team, deaths };
}

test('a thread that does not say that it has drained is waited for a second beyond its time', (t) =>
  withStore({}, async ({ store }) => {
    const { team, deaths } = await withDeaf(t, store);
    await team.listen();
    // Of two timers of one process the shorter ends first, however busy the machine is.
    const drained = Promise.race([team.drain(0).then(() => 'drained'), wait(8 * MAX_LATE_MS, 'late', { ref: false })]);
    assert.equal(await drained, 'drained');
    assert.deepEqual(deaths, []);
  }));

test('a thread that is held up holds up no scrape: its last counts are told, and how late it is', (t) =>
  withStore({}, async ({ store }) => {
    const { team } = await withDeaf(t, store);
    const scrape = () => Promise.race([team.figures(), wait(8 * MAX_COUNTS_MS, [], { ref: false })]);
    const scrapes = [...(await Promise.all([scrape(), scrape()])), await scrape()];
    const late = scrapes.map(([{ open, loopDelay }]) => {
      assert.equal(open, 1, 'what it told at the start');
      return loopDelay;
    });
    assert.ok(Math.min(late[0], late[1]) >= 0.9 && late[2] >= 1.9, `${late} s`);
    await team.listen(); // it hears again
    assert.deepEqual(await scrape(), [{ open: 3, loopDelay: 0 }], 'it was not asked by each scrape meanwhile');
  }));

test('a lock that another thread holds is tried a hundred times; then this one sleeps', (t) => {
  const { words } = newMemory();
  lock(words, 7);
  const tries = t.mock.method(Atomics, 'compareExchange');
  t.mock.method(Atomics, 'wait', () => {
    throw new Error('asleep');
  });
  assert.throws(() => lock(words, 7), /asleep/);
  assert.equal(tries.mock.callCount(), MAX_SPINS);
});

test('a lock of the limiter that is never let go is waited for 10 s: then 500, and a line that says why', async (t) => {
  const memory = newMemory();
  const own = await serviceFor(t);
  const limiter = new SharedLimiter({ clock: own.clock, unix: () => own.store.unix() }, memory);
  const engine = { store: own.store, limiter, close: async () => {} } as unknown as Engine;
  const { fetch, logged, key } = await serviceFor(t, { engine });
  const ask = async () => {
    const reply = await fetch('/v1/pets', { key });
    return { status: reply.status, headers: reply.headers, body: await reply.text() };
  };
  assert.equal((await ask()).status, 200);
  for (let number = 0; number < 8; number++) lock(memory.words, number); // as a thread that died with them
  const began = performance.now();
  assertError(await ask(), 500, 'internal_error');
  const ms = performance.now() - began;
  assert.ok(ms > 0.9 * MAX_LOCK_WAIT_MS && ms < 8 * MAX_LOCK_WAIT_MS, `${ms} ms`);
  assert.match(
    JSON.stringify(logged.splice(0), (_, value) => (value instanceof Error ? value.message : value)),
    /a thread has ended with a lock of the limiter in hand/,
  );
});
