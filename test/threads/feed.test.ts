/** One writer and readers that follow: they show the same, no sooner and no later. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { MessageChannel } from 'node:worker_threads';
import { StateAhead } from '../../src/store/ahead.ts';
import type { Change } from '../../src/store/model.ts';
import { State } from '../../src/store/state.ts';
import { Feed, Follower } from '../../src/threads/feed.ts';
import { newMemory, PUBLISHED } from '../../src/threads/memory.ts';
import { seeded } from '../faults/sim-disk.ts';
import { oneChange } from '../faults/workload.ts';

/** Until the test ends, however it does: an open port would keep the process. */
function feeding(t: TestContext, state = new State(), published = 0) {
  const { words } = newMemory();
  Atomics.store(words, PUBLISHED, published);
  const { port1, port2 } = new MessageChannel();
  port1.unref();
  const feed = new Feed(words);
  feed.begin(state, [port1]);
  const follower = new Follower({ words, port: port2, unix: () => 0 });
  t.after(() => follower.close());
  return { state, words, feed, follower };
}

const pet = (id: number): Change => ({
  op: 'addPet',
  pet: { id, name: 'Rex', categoryId: 2n ** 62n, status: 'available' },
});
const turn = () => new Promise((resolve) => setImmediate(resolve));

/** All that a reader shows. */
function shown({
  pets,
  orders,
  categories,
  keys,
}: Pick<State, 'pets' | 'orders' | 'categories'> & { keys: ReadonlyMap<string, unknown> }) {
  const all = Number.POSITIVE_INFINITY;
  return [pets.page(0, all).items, orders.page(0, all).items, categories.page().items, [...keys.values()]];
}

test('random changes, before and after it follows: it shows what the writer shows', async (t) => {
  const random = seeded(7);
  const state = new State();
  const next = () => {
    const change = oneChange(new StateAhead(state), random);
    state.apply([change]);
    return change;
  };
  for (let i = 0; i < 400; i++) next();
  const { feed, follower } = feeding(t, state);
  assert.deepEqual(shown(follower.read as State), shown(state));
  for (let i = 0; i < 400; i++) {
    feed.publish(Array.from({ length: 1 + (i % 3) }, next));
    if (i % 7 === 0) await turn(); // some come as events, some are taken out of the port
    assert.deepEqual(follower.read.counts(), state.counts());
  }
  assert.deepEqual(shown(follower.read as State), shown(state));
});

test('what is published is read at once; what is delivered and not published is not, by nobody', async (t) => {
  const { words, feed, follower } = feeding(t);
  feed.publish([pet(1)]);
  assert.equal(follower.read.counts().pets, 1, 'taken out of the port');
  feed.publish([pet(2)]);
  Atomics.sub(words, PUBLISHED, 1); // as if it were just being posted
  for (let i = 0; i < 3; i++) await turn();
  assert.equal(follower.read.counts().pets, 1);
  Atomics.add(words, PUBLISHED, 1);
  assert.equal(follower.read.counts().pets, 2);
});

test('a reader whom nobody asks keeps up, so that nothing piles up; the number wraps round', async (t) => {
  const { feed, follower } = feeding(t, new State(), 2 ** 31 - 25);
  const seen = follower.read; // the state itself: looking at it takes nothing out of the port
  for (let id = 1; id <= 50; id++) feed.publish([pet(id)]);
  for (let i = 0; i < 100 && seen.counts().pets < 50; i++) await turn();
  assert.equal(seen.counts().pets, 50);
  feed.publish([pet(51)]);
  assert.equal(follower.read.counts().pets, 51);
});

test('what keys have used, and Idempotency-Keys, are nothing to a reader', async (t) => {
  const { words, feed, follower } = feeding(t);
  feed.publish([{ op: 'usage', at: 1, entries: [] }]);
  assert.equal(Atomics.load(words, PUBLISHED), 0);
  const once = { caller: 'k1', key: 'a', at: 1 };
  feed.publish([{ ...(pet(1) as Change & { op: 'addPet' }), once }]);
  assert.equal(follower.read.counts().pets, 1);
  assert.equal(follower.read.firstResult('addPet', once), undefined);
  await assert.rejects(follower.write());
});
