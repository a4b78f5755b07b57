import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newAccount } from '../../src/access/limiter.ts';
import { StoreError, type Transaction } from '../../src/store/model.ts';
import type { Changes } from '../../src/store/tables.ts';
import { SetClock } from '../clock.ts';
import { quiet } from '../faults/life.ts';
import { memoryStore } from './memory-store.ts';
import { newKey, newReplay, PLACED_AT } from './plain-model.ts';

const rex = { name: 'Rex', categoryId: 1, status: 'available' as const };
const add = (tx: Transaction) => tx.pets.add(rex).id;

/** Batches that become durable when the test says so. */
function heldBatches() {
  const batches: { changes: Changes; release(error?: Error): void }[] = [];
  const onBatch = (changes: Changes) =>
    new Promise<void>((resolve, reject) => {
      batches.push({ changes, release: (error) => (error ? reject(error) : resolve()) });
    });
  const next = async () => {
    while (batches.length === 0) await new Promise((resolve) => setImmediate(resolve));
    return batches.shift()!;
  };
  return { onBatch, next };
}

/** How many works were in each batch. */
const added = (changes: Changes) => changes.reduce((sum, { rows }) => sum + rows.length, 0);

test('transactions that wait become one batch; those that come meanwhile the next', async () => {
  const { onBatch, next } = heldBatches();
  const store = memoryStore({ onBatch });
  const first = [1, 2, 3].map(() => store.write(add));
  const one = await next();
  const second = [4, 5].map(() => store.write(add));
  assert.equal(added(one.changes), 3);
  assert.equal(store.read.pets.size, 0);
  one.release();
  assert.deepEqual(await Promise.all(first), [1, 2, 3]);
  assert.equal(store.read.pets.size, 3);
  const two = await next();
  assert.equal(added(two.changes), 2);
  two.release();
  assert.deepEqual(await Promise.all(second), [4, 5]);
});

test('a transaction sees those before it in its batch, and what one that threw did is gone', async () => {
  const store = memoryStore();
  const refused = new Error('refused');
  const ends = await Promise.allSettled([
    store.write(add),
    store.write((tx) => {
      tx.pets.put({ id: 1, ...rex, name: 'Changed' });
      tx.pets.delete(1);
      add(tx);
      tx.pets.put({ id: 2, ...rex, name: 'Other' });
      tx.categories.put({ id: 1, name: 'cats' });
      throw refused;
    }),
    store.write((tx) => [tx.pets.get(1)?.name, tx.categories.get(1), add(tx)]),
  ]);
  assert.deepEqual(
    ends.map((end) => (end.status === 'fulfilled' ? end.value : end.reason)),
    [1, refused, ['Rex', undefined, 2]],
  );
});

test('what ran with a batch that failed fails with it, and the next batch goes on', async () => {
  for (const failure of ['unknown', 'full'] as const) {
    const { onBatch, next } = heldBatches();
    const store = memoryStore({ onBatch });
    const refuse = () => {
      throw new Error('refused');
    };
    const ends = Promise.allSettled([store.write(add), store.write((tx) => tx.pets.get(1)), store.write(refuse)]);
    (await next()).release(new StoreError(failure, 'a disk'));
    const outcomes = (await ends).map((end) => end.status === 'rejected' && end.reason.failure);
    assert.deepEqual(outcomes, [failure, failure, failure]);
    assert.equal(store.read.pets.size, 0);
    const later = store.write(add);
    (await next()).release();
    assert.equal(await later, 1);
  }
});

test('4,096 transactions wait at most; more are refused as busy', async () => {
  const { onBatch, next } = heldBatches();
  const store = memoryStore({ onBatch });
  const first = store.write(add);
  const batch = await next();
  const waiting = Array.from({ length: 4_096 }, () => store.write(add));
  await assert.rejects(store.write(add), { failure: 'busy' });
  batch.release();
  await first;
  for (let done = 0; done < 4_096; ) {
    const { changes, release } = await next();
    done += added(changes);
    release();
  }
  assert.equal((await Promise.all(waiting)).at(-1), 4_097);
});

test('a transaction that adds rows beyond the maximum is refused; others are not', async () => {
  const store = memoryStore({ maxBytes: 400 });
  const ids: number[] = [];
  let refusals = 0;
  for (let n = 0; n < 9; n++)
    await store.write(add).then(
      (id) => ids.push(id),
      ({ failure }) => (refusals += failure === 'bound' ? 1 : 0),
    );
  assert.ok(ids.length > 3 && ids.length + refusals === 9, `${ids.length} added, ${refusals} refused`);
  await store.write((tx) => tx.pets.put({ id: 1, ...rex, status: 'sold' }));
  await store.write((tx) => tx.pets.delete(2));
  assert.equal(await store.write(add), ids.length + 1);
  await assert.rejects(store.write(add), { failure: 'bound' });
  // At the maximum, one can take the place of another in one transaction.
  const replaced = store.write((tx) => {
    tx.pets.delete(1);
    return add(tx);
  });
  assert.equal(await replaced, ids.length + 2);
});

test('animals and categories that grow count against the maximum; what closes an order or revokes a key may pass it', async () => {
  const store = memoryStore({ maxBytes: 700 });
  await store.write((tx) => {
    add(tx);
    tx.pets.put({ id: 1, ...rex, status: 'pending' });
    tx.orders.add({ petId: 1, status: 'placed', placedAt: PLACED_AT });
    tx.categories.put({ id: 1, name: 'cats' });
    tx.keys.add(newKey('a'));
  });
  const long = (length: number) => ({ id: 1, ...rex, status: 'pending' as const, name: 'x'.repeat(length) });
  const renamed = (length: number) => store.write((tx) => tx.pets.put(long(length)));
  const isFull = { failure: 'bound' };
  let length = 3;
  while (
    await renamed(length + 1).then(
      () => true,
      () => false,
    )
  )
    length++;
  assert.ok(length > 300 && length < 500, `${length} characters`);
  await assert.rejects(renamed(length + 1), isFull);
  await assert.rejects(
    store.write((tx) => tx.categories.put({ id: 1, name: 'catss' })),
    isFull,
  );
  // Several in one batch count together.
  await renamed(length - 10);
  const ends = await Promise.allSettled([
    renamed(length - 5),
    store.write((tx) => tx.categories.put({ id: 1, name: 'cats and dogs' })),
  ]);
  assert.deepEqual(
    ends.map(({ status }) => status),
    ['fulfilled', 'rejected'],
  );
  await renamed(length);
  await store.write((tx) => {
    tx.orders.put({ id: 1, petId: 1, status: 'cancelled', placedAt: PLACED_AT });
    tx.pets.put({ ...long(length), status: 'available' });
  });
  await store.write((tx) => tx.keys.put({ ...newKey('a'), id: 1, revokedAt: 2 }));
});

test('what a transaction that threw would have added does not count against the maximum', async () => {
  const store = memoryStore({ maxBytes: 1_000 });
  const long = { ...rex, name: 'x'.repeat(400) };
  const refused = new Error('refused');
  const attempts = Array.from({ length: 4 }, () =>
    store.write((tx) => {
      tx.pets.add(long);
      tx.keys.add(newKey('a'));
      throw refused;
    }),
  );
  const ends = await Promise.allSettled([
    ...attempts,
    store.write((tx) => tx.pets.add(long).id),
    store.write((tx) => [tx.pets.add(long).id, tx.pets.add(long).id]),
    store.write((tx) => tx.pets.add(long).id),
  ]);
  assert.deepEqual(
    ends.slice(4).map((end) => (end.status === 'fulfilled' ? end.value : end.reason.failure)),
    [1, 'bound', 2],
  );
  assert.deepEqual([store.read.pets.size, store.read.keys.size], [2, 0]);
});

test('orders, keys and usage go on at the maximum, and nothing else grows with them', async () => {
  const store = memoryStore({ maxBytes: 900 });
  const key = await store.write((tx) => {
    add(tx);
    tx.pets.put({ id: 1, ...rex, status: 'pending' });
    tx.orders.add({ petId: 1, status: 'placed', placedAt: PLACED_AT });
    return tx.keys.add(newKey('a'));
  });
  const isFull = { failure: 'bound' };
  for (;;)
    if (
      await store.write(add).then(
        () => false,
        () => true,
      )
    )
      break;
  await assert.rejects(
    store.write((tx) => tx.keys.add(newKey('b'))),
    isFull,
  );
  await assert.rejects(
    store.write((tx) => tx.orders.add({ petId: 1, status: 'cancelled', placedAt: PLACED_AT })),
    isFull,
  );
  await assert.rejects(
    store.write((tx) => tx.replays.put(newReplay('createPet k1 a', 1, 1))),
    isFull,
  );
  await store.write((tx) => tx.usage.put({ id: key.id, ...newAccount() }));
  const mixed = store.write((tx) => {
    tx.usage.put({ id: key.id, ...newAccount(), minuteUsed: 1_000 });
    add(tx);
  });
  await assert.rejects(mixed, isFull);
  await store.write((tx) => {
    tx.orders.put({ id: 1, petId: 1, status: 'cancelled', placedAt: PLACED_AT });
    tx.pets.put({ id: 1, ...rex });
  });
  await store.write((tx) => tx.keys.put({ ...key, secrets: [...key.secrets, { digest: 'c' }] }));
  await assert.rejects(store.write(add), isFull);
});

test('writes that are refused as full are told once a minute', async () => {
  const said: string[] = [];
  const log = { ...quiet, warn: (message: string) => void said.push(message) };
  const clock = new SetClock();
  const store = memoryStore({
    maxBytes: 2 ** 20,
    clock,
    log,
    onBatch: () => Promise.reject(new StoreError('full', 'no room')),
  });
  for (const ms of [0, 59_999, 1, 0]) {
    clock.advance(ms);
    await assert.rejects(store.write(add), { failure: 'full' });
  }
  const isFull = store.write((tx) => {
    for (let n = 0; n < 3_000; n++) tx.categories.put({ id: n, name: 'x'.repeat(400) });
  });
  clock.advance(60_000);
  await assert.rejects(isFull, { failure: 'bound' });
  const refused = 'writes are refused: ';
  assert.deepEqual(said, [
    `${refused}no room`,
    `${refused}no room`,
    `${refused}the store has reached its maximum of 1 MB`,
  ]);
});

test('replays that have ended leave memory; a key is asked for its own', async () => {
  const clock = new SetClock();
  const store = memoryStore({ clock });
  const put = (id: string, keyId: number) =>
    store.write((tx) =>
      tx.replays.put({ id, keyId, digest: '', status: 201, body: '', location: '', at: store.now() }),
    );
  for (const id of ['a', 'b', 'c']) await put(id, 1);
  clock.advance(3_600_000);
  await put('d', 2);
  clock.advance(23 * 3_600_000);
  assert.equal(await store.write((tx) => tx.replays.get('a')), undefined);
  await put('e', 3);
  assert.deepEqual([store.read.replays.size, store.read.replays.ofKey(1).size], [2, 0]);
  assert.equal(store.read.replays.ofKey(2).size, 1);
  // One that has ended and is used again goes behind those that end before it.
  await put('f', 4);
  clock.advance(3_600_000);
  await put('g', 4);
  clock.advance(23 * 3_600_000);
  await put('f', 4);
  const again = store.now();
  clock.advance(3_600_000);
  await put('h', 5);
  assert.deepEqual(store.read.replays.ofKey(4), { size: 1, oldestAt: again });
});
