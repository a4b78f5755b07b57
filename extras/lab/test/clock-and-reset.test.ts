/** Time passes for a key, for all that is its own, and for nobody else; a reset makes the store the seed again. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { REX, startLab } from './service.ts';

test('Retry-After and the reset are true on the real clock, and a client may heed either', async (t) => {
  const { clock, ask, must, advance, check } = await startLab(t, { perMinute: 1 });
  const endsAt = clock.wall() + 60_000;
  await must('GET /v1/pets');
  assert.equal((await advance('40s')).headers.get('x-lab-clock'), '+40');
  const { status, headers } = await ask('GET /v1/pets');
  assert.deepEqual([status, headers.get('retry-after'), headers.get('x-lab-clock')], [429, '21', '+40']);
  assert.equal(Number(headers.get('x-ratelimit-reset')) * 1_000, endsAt - 40_000);
  assert.match(headers.get('ratelimit')!, /"minute";r=0;t=20,/);
  clock.advance(20_000);
  await must('GET /v1/pets');
  assert.equal((await check('retry_after')).verdict, 'pass');
});

test('a ban passes, and its Retry-After is true on the real clock; a reset forgets strikes and bans', async (t) => {
  const { ask, must, advance, check } = await startLab(t, { banAfter: 2, perMinute: 1 });
  const list = async () => {
    const { json, headers } = await ask('GET /v1/pets');
    return [json.code, headers.get('retry-after'), headers.get('x-request-id')];
  };
  await list();
  await list();
  const [code, wait, id] = await list();
  assert.deepEqual([code, wait], ['key_banned', '121']);
  await advance('119s');
  assert.deepEqual((await list()).slice(0, 2), ['key_banned', '2']);
  await advance('1s');
  assert.equal((await list())[0], undefined);
  const { verdict, count, requestIds } = await check('ban');
  assert.deepEqual([verdict, count, requestIds], ['fail', 1, [id]]);
  for (const once of ['rate_limited', 'key_banned', 'key_banned']) assert.equal((await list())[0], once);
  await must('POST /lab/reset');
  for (const once of [undefined, 'rate_limited', 'key_banned']) assert.equal((await list())[0], once);
});

test('its idempotency records age, and nobody else’s', async (t) => {
  const { clock, key, must, advance, makeKey } = await startLab(t);
  const other = await makeKey();
  const create = async (key: string) => {
    const { headers, json } = await must('POST /v1/pets', REX, { key, headers: { 'idempotency-key': 'a' } });
    return [json.id, headers.get('idempotent-replayed')];
  };
  assert.deepEqual([await create(key), await create(other)], [[1, null], [2, null]]); // biome-ignore format: pairs
  await advance('23h');
  assert.deepEqual(await create(key), [1, 'true']);
  await advance('3649d');
  assert.deepEqual(await create(key), [3, null]);
  assert.deepEqual(await create(key), [3, 'true']); // what is made now is as old as it is
  assert.deepEqual(await create(other), [2, 'true']);
  clock.advance(86_400_000);
  assert.deepEqual(await create(other), [4, null]);
  assert.deepEqual(await create(key), [5, null]);
});

test('the clock of one key brings the removal of the deprecated operation for that key alone', async (t) => {
  const { clock, ask, must, advance, makeKey } = await startLab(t);
  const other = { key: await makeKey() };
  await must('POST /v1/pets', REX);
  await advance(`${(Date.UTC(2030, 11, 5) - clock.wall()) / 1_000 - 1}s`);
  await must('GET /v1/pets/1');
  await advance('1s');
  assert.equal((await ask('GET /v1/pets/1')).status, 410);
  await must('GET /v1/pets/1', undefined, other);
});

test('ten years in all, also for many who ask at the same time', async (t) => {
  const { ask, must } = await startLab(t);
  const all = await Promise.all(Array.from({ length: 20 }, () => ask('POST /lab/clock', { advance: '365d' })));
  assert.deepEqual(all.map(({ status }) => status).sort(), [...Array(10).fill(200), ...Array(10).fill(400)]);
  assert.deepEqual((await must('GET /lab/clock')).json, { ahead: 3_650 * 86_400 });
  const { json } = await ask('POST /lab/clock', { advance: '1s' });
  assert.match(json.message, /3650d ahead in all; 0s are left/);
});

test('after a reset all is as the seed makes it, ids too; another key keeps all but what it had made', async (t) => {
  const categories = [{ id: 9007199254740993n, name: 'fish' }];
  const pets = [{ ...REX, status: 'available' } as const, { name: 'Tom', categoryId: 2, status: 'sold' } as const];
  const { must, makeKey, store } = await startLab(t, { categories, pets, perMinute: 5, perDay: 7 });
  const other = { key: await makeKey() };
  const once = { headers: { 'idempotency-key': 'a' } };
  for (const caller of [{}, other]) {
    const { headers } = await must('POST /v1/pets', REX, { ...caller, ...once });
    assert.equal(headers.get('x-lab-clock'), null, 'the time of one is not that of the other');
    await must('POST /lab/clock', { advance: '10s' }, caller);
    await must('POST /lab/faults', { kind: 'unavailable', operation: 'putCategory' }, caller);
  }
  await must('POST /v1/store/orders', { petId: 1 });

  assert.equal((await must('POST /lab/reset')).headers.get('x-lab-clock'), null);
  assert.deepEqual((await must('GET /lab/clock')).json, { ahead: 0 });
  assert.deepEqual((await must('GET /lab/faults')).json, []);
  assert.deepEqual((await must('GET /lab/requests')).json, []);
  assert.equal((await must('GET /lab/grade')).json.seen, 0);
  const list = await must('GET /v1/pets');
  assert.deepEqual([list.headers.get('x-ratelimit-remaining'), list.headers.get('x-lab-clock')], ['4', null]);
  assert.match(list.headers.get('ratelimit')!, /"day";r=6;/);
  const [rex, tom] = pets;
  assert.deepEqual(list.json, [{ id: 1, ...rex }, { id: 2, ...tom }]); // biome-ignore format: a list
  const { pets: left, orders, categories: named } = store.read;
  assert.deepEqual([left.size, orders.size, named.size], [2, 0, 1]);
  assert.equal(store.read.categories.get(9007199254740993n)?.name, 'fish');
  const made = await must('POST /v1/pets', REX, once);
  assert.deepEqual([made.json.id, made.headers.get('idempotent-replayed')], [3, null]);
  assert.equal((await must('POST /v1/store/orders', { petId: 1 })).json.id, 1);

  assert.deepEqual((await must('GET /lab/clock', undefined, other)).json, { ahead: 10 });
  assert.equal((await must('GET /lab/faults', undefined, other)).json.length, 1);
  assert.equal((await must('GET /lab/requests', undefined, other)).json.length, 1);
  assert.equal((await must('POST /v1/pets', REX, { ...other, ...once })).json.id, 4);
});

test('reset of the key alone: its limits, clock, faults and record; the shop stays', async (t) => {
  const { must, store } = await startLab(t, { pets: [{ ...REX, status: 'available' }], perMinute: 5, perDay: 7 });
  await must('POST /v1/pets', REX);
  await must('POST /lab/clock', { advance: '10s' });
  await must('POST /lab/faults', { kind: 'drop_before' });
  await must('POST /lab/reset', { only: 'key' });
  assert.deepEqual((await must('GET /lab/clock')).json, { ahead: 0 });
  assert.deepEqual((await must('GET /lab/faults')).json, []);
  assert.deepEqual((await must('GET /lab/requests')).json, []);
  assert.equal((await must('GET /v1/pets')).headers.get('x-ratelimit-remaining'), '4');
  assert.equal(store.read.pets.size, 2);
});

test('after a reset of the key alone its idempotency records stay as old as they were', async (t) => {
  const { clock, key, must, advance, makeKey, store } = await startLab(t);
  const other = await makeKey();
  const create = async (name: string, caller = key) => {
    const { headers, json } = await must('POST /v1/pets', REX, { key: caller, headers: { 'idempotency-key': name } });
    return [json.id, headers.get('idempotent-replayed')];
  };
  await create('ended');
  await advance('3649d');
  await create('young');
  await create('theirs', other);
  await advance('1h');
  await must('POST /lab/reset', { only: 'key' });
  assert.deepEqual(await create('young'), [2, 'true']);
  assert.deepEqual(await create('ended'), [4, null], 'what has ended does not come back');
  clock.advance(23 * 3_600_000 - 1);
  assert.deepEqual(await create('young'), [2, 'true']);
  clock.advance(1);
  assert.deepEqual(await create('young'), [5, null], 'an hour had passed before the reset');
  clock.advance(3_600_000);
  await create('new');
  assert.equal(store.read.replays.size, 2, 'those of all that have ended are gone');
});

test('a page of another origin may read the clock of its key', async (t) => {
  const { must, advance } = await startLab(t, { corsOrigin: 'https://shop.example' });
  const exposed = async () => (await must('GET /v1/pets')).headers.get('access-control-expose-headers');
  const before = await exposed();
  assert.match(before!, /, X-Request-Id$/);
  await advance('1s');
  assert.match((await exposed())!, /\bX-Lab-Clock\b/);
});
