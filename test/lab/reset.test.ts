/** `POST /lab/reset`: the store is the seed again, for everybody; the limits, the clock and the record are this key's. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { REX, startLab } from './service.ts';

const SEED = {
  categories: [{ id: 9007199254740993n, name: 'fish' }],
  pets: [
    { ...REX, status: 'available' as const },
    { name: 'Tom', categoryId: 2, status: 'sold' as const },
  ],
};

test('all of it is as the seed makes it, ids too', async (t) => {
  const { ask, must, makeKey, engine } = await startLab(t, { content: SEED });
  const [key, other] = [await makeKey({ perMinute: 5, perDay: 7 }), await makeKey()];
  const once = { headers: { 'idempotency-key': 'a' } };
  for (const caller of [key, other]) await must('POST /v1/pets', { key: caller, body: REX, ...once });
  await must('POST /v1/store/orders', { key, body: { petId: 1 } });
  await must('PUT /v1/categories/5', { key: other, body: { name: 'birds' } });
  await must('POST /lab/clock', { key, body: { advance: '10s' } });
  await must('POST /lab/clock', { key: other, body: { advance: '10s' } });
  await must('POST /lab/faults', { key, body: { kind: 'unavailable', operation: 'listPets' } });
  await must('POST /lab/faults', { key: other, body: { kind: 'unavailable', operation: 'putCategory' } });

  const { status, headers, json } = await ask('POST /lab/reset', { key });
  assert.deepEqual([status, json, headers.get('x-lab-clock')], [204, undefined, null]);

  assert.deepEqual((await must('GET /lab/clock', { key })).json, { ahead: 0 });
  assert.deepEqual((await must('GET /lab/faults', { key })).json, []);
  assert.deepEqual((await must('GET /lab/requests', { key })).json, []);
  assert.equal((await must('GET /lab/grade', { key })).json.seen, 0);
  const list = await must('GET /v1/pets', { key });
  assert.deepEqual([list.headers.get('x-ratelimit-remaining'), list.headers.get('x-lab-clock')], ['4', null]);
  assert.match(list.headers.get('ratelimit')!, /"day";r=6;/);
  assert.deepEqual(list.json, [
    { id: 1, ...SEED.pets[0] },
    { id: 2, ...SEED.pets[1] },
  ]);
  const { pets, orders, categories } = engine.store.read.counts();
  assert.deepEqual([pets, orders, categories], [2, 0, 1]);
  assert.equal(engine.store.read.categories.get(9007199254740993n)?.name, 'fish');
  const made = await must('POST /v1/pets', { key, body: REX, ...once });
  assert.deepEqual([made.json.id, made.headers.get('idempotent-replayed')], [3, null]);
  assert.equal((await must('POST /v1/store/orders', { key, body: { petId: 1 } })).json.id, 1);

  // What is another key's stays, but for what it had made.
  assert.deepEqual((await must('GET /lab/clock', { key: other })).json, { ahead: 10 });
  assert.equal((await must('GET /lab/faults', { key: other })).json.length, 1);
  assert.equal((await must('GET /lab/requests', { key: other })).json.length, 2);
  assert.equal((await must('POST /v1/pets', { key: other, body: REX, ...once })).json.id, 4);
});

test('a ban ends, and strikes are forgotten', async (t) => {
  const { ask, must, makeKey } = await startLab(t, { banAfter: 2 });
  const key = await makeKey({ perMinute: 1, perDay: 1 });
  for (const status of [200, 429, 429, 429]) assert.equal((await ask('GET /v1/pets', { key })).status, status);
  await must('POST /lab/reset', { key });
  for (const code of [undefined, 'rate_limited', 'key_banned']) {
    assert.equal((await ask('GET /v1/pets', { key })).json.code, code);
  }
});

test('requests that are under way when it comes are answered, and are not in the new record', async (t) => {
  const { must, makeKey } = await startLab(t);
  const key = await makeKey();
  await must('POST /lab/faults', { key, body: { kind: 'delay', ms: 100 } });
  const late = must('GET /v1/pets', { key });
  while ((await must('GET /lab/faults', { key })).json.length > 0);
  await must('POST /lab/reset', { key });
  await late;
  assert.deepEqual((await must('GET /lab/requests', { key })).json, []);
});
