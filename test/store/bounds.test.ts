/** The bounds of the tables of the store: a store that says to have its maximum takes no more, and says so. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asCommandError } from '../../src/operator/exit.ts';
import { assertError } from '../raw.ts';
import { serviceFor } from '../service.ts';
import { addKey, aKey, withStore } from './opened.ts';

const MAX_ROWS = 1_000_000;

/** Filling a table would take minutes: it tells another number of rows instead. */
const withSize = (table: object, value: number) => Object.defineProperty(table, 'size', { value, configurable: true });

test('a store has 1,000,000 categories: a new one gets 507, and one that is there is changed', async (t) => {
  const { store, fetch, key } = await serviceFor(t);
  const put = async (id: number) => {
    const headers = { 'content-type': 'application/json' };
    const reply = await fetch(`/v1/categories/${id}`, { method: 'PUT', key, headers, body: '{"name":"cats"}' });
    return { status: reply.status, headers: reply.headers, body: await reply.text() };
  };
  withSize(store.read.categories, MAX_ROWS - 1);
  const first = await put(1);
  assert.ok([200, 201].includes(first.status), first.body);
  withSize(store.read.categories, MAX_ROWS);
  assert.equal(
    assertError(await put(2), 507, 'storage_full'),
    'the store has 1,000,000 categories, and takes no more; this was not kept, and reading goes on',
  );
  assert.equal((await put(1)).status, 200);
});

test('what a batch changes leaves room for what it adds: the last free place is given, once', async (t) => {
  const { store } = await serviceFor(t);
  const set = (id: number) => store.write(() => ({ op: 'setCategory', category: { id, name: 'cats' } }));
  await set(1);
  withSize(store.read.categories, MAX_ROWS - 1);
  const batch = await Promise.allSettled([set(1), set(1), set(2), set(1), set(2), set(3)]);
  assert.deepEqual(
    batch.map(({ status }) => status),
    [...Array(5).fill('fulfilled'), 'rejected'],
  );
});

test('a store has 1,000,000 keys: no other is made, one that is there can end, and the command says why', () =>
  withStore({}, async ({ store }) => {
    const { keys } = store.read;
    withSize(keys, MAX_ROWS - 1);
    await addKey(store);
    withSize(keys, MAX_ROWS);
    const told = await addKey(store).then(
      () => '',
      (error) => asCommandError(error, 'data')?.message,
    );
    assert.equal(told, 'the store has 1,000,000 keys, and takes no more; this was not kept, and reading goes on');
    await store.write(() => ({ op: 'setKey', key: aKey(0, { revokedAt: 2 }) }));
    Reflect.deleteProperty(keys, 'size');
  }));
