/** The handlers over the store: pages against a plain list, and the bounds on Idempotency-Keys. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Callers } from '../../src/access/callers.ts';
import { MAX_REPLAYS_OF_KEY } from '../../src/shop/idempotency.ts';
import { createOrder } from '../../src/shop/orders.ts';
import { createPet, deletePet, petJson } from '../../src/shop/pets.ts';
import { PET_STATUSES, type Pet, TABLES } from '../../src/store/model.ts';
import { SetClock } from '../clock.ts';
import { below, seeded } from '../random.ts';
import { PET } from '../raw.ts';
import { serviceFor } from '../service.ts';
import { memoryStore } from '../store/memory-store.ts';
import { newKey } from '../store/plain-model.ts';

const DAY_MS = 86_400_000;
const JSON_TYPE = { 'content-type': 'application/json' };

test('every page of random lists is what a plain list gives, while animals come, change and go', async (t) => {
  const seed = Number(process.env.SEED ?? Date.now() % 2 ** 31);
  t.diagnostic(`SEED=${seed} plays the same again`);
  const chance = seeded(seed);
  const random = (end: number) => below(chance, end);
  const { key, fetch, store } = await serviceFor(t);
  const model = new Map<number, Pet>();
  const page = async (limit: number, after: number, status?: string) => {
    const filter = status === undefined ? '' : `&status=${status}`;
    const reply = await fetch(`/v1/pets?limit=${limit}${filter}&after=${after}`, { key });
    const rest = [...model.values()].filter((one) => one.id > after && (!status || one.status === status));
    const items = rest.sort((a, b) => a.id - b.id).slice(0, limit);
    assert.deepEqual(await reply.json(), items);
    const next = `</v1/pets?limit=${limit}${filter}&after=${items.at(-1)?.id}>; rel="next"`;
    assert.equal(reply.headers.get('link'), rest.length > limit ? next : null);
  };
  for (let round = 0; round < 60; round++) {
    await store.write((tx) => {
      for (let n = random(20); n >= 0; n--) {
        const id = 1 + random(store.read.pets.lastId + 1);
        const row = { name: `Zoë ${random(1e6)}`, categoryId: random(9), status: PET_STATUSES[random(3)] };
        const kind = random(4);
        if (kind === 0 && model.has(id)) {
          model.delete(id);
          tx.pets.delete(id);
        } else if (kind === 1 && model.has(id)) {
          model.set(id, { id, ...row });
          tx.pets.put({ id, ...row });
        } else {
          const added = tx.pets.add(row);
          model.set(added.id, added);
        }
      }
    });
    for (let n = 0; n < 4; n++) {
      await page(
        1 + random(100),
        random(store.read.pets.lastId + 3),
        [undefined, undefined, ...PET_STATUSES][random(5)],
      );
    }
  }
  assert.equal(store.read.pets.size, model.size);
});

test('a list of more rows than a chunk of them has is whole, and so is one of which many were removed', async (t) => {
  const { key, fetch, store } = await serviceFor(t);
  const all = new Set<number>();
  await store.write((tx) => {
    for (let n = 0; n < 1_300; n++) all.add(tx.pets.add({ name: 'a', categoryId: 1, status: 'available' }).id);
  });
  const listed = async (limit: number) => {
    const ids: number[] = [];
    for (let next: string | undefined = `/v1/pets?limit=${limit}`; next !== undefined; ) {
      const reply: Response = await fetch(next, { key });
      ids.push(...((await reply.json()) as Pet[]).map(({ id }) => id));
      next = /<(.+)>/.exec(reply.headers.get('link') ?? '')?.[1];
    }
    return ids;
  };
  for (const limit of [100, 64]) assert.deepEqual(await listed(limit), [...all]);
  await store.write((tx) => {
    for (let id = 400; id < 1_100; id++) {
      tx.pets.delete(id);
      all.delete(id);
    }
  });
  for (const limit of [100, 64]) assert.deepEqual(await listed(limit), [...all]);
});

test('an order keeps its animal, also where both are decided in one batch', async () => {
  let batches = 0;
  const store = memoryStore({ onBatch: () => void batches++ });
  const key = await store.write((tx) => tx.keys.add(newKey('a')));
  const context = { store, callers: new Callers(store, 'production'), clock: new SetClock() };
  const call = (param: string, body: string) => {
    return { caller: { key, digest: 'a' }, param, query: '', idempotencyKey: undefined, body: Buffer.from(body) };
  };
  for (const isOrderFirst of [true, false]) {
    const { id } = await store.write((tx) => tx.pets.add({ name: 'a', categoryId: 1, status: 'available' }));
    const order = () => createOrder(call('', `{"petId":${id}}`), context);
    const removal = () => deletePet(call(`${id}`, ''), context);
    batches = 0;
    const ends = await Promise.allSettled(isOrderFirst ? [order(), removal()] : [removal(), order()]);
    const told = ends.map((end) => (end.status === 'fulfilled' ? end.value.status : end.reason.code));
    assert.deepEqual(told, isOrderFirst ? [201, 'pet_unavailable'] : [204, 'invalid_body']);
    assert.equal(batches, 1);
    assert.equal(store.read.pets.get(id) !== undefined, isOrderFirst);
  }
});

test('of two writes in one batch the second is decided on what the first leaves', async (t) => {
  const { key, fetch } = await serviceFor(t);
  const send = (method: string, path: string, body: string) => fetch(path, { method, headers: JSON_TYPE, body, key });
  const statuses = async (...replies: Promise<Response>[]) =>
    (await Promise.all(replies)).map(({ status }) => status).sort();
  for (let id = 1; id <= 10; id++) {
    await send('POST', '/v1/pets', PET);
    const order = () => send('POST', '/v1/store/orders', `{"petId":${id}}`);
    assert.deepEqual(await statuses(order(), order()), [201, 409]);
  }
});

test('at the maximum of the store animals cannot grow, and orders can be closed', async (t) => {
  const { key, fetch, store } = await serviceFor(t, { maxBytes: 20_000 });
  const send = async (method: string, path: string, body: unknown) =>
    (await fetch(`/v1${path}`, { method, headers: JSON_TYPE, body: JSON.stringify(body), key })).status;
  const longest = '\u{1f408}'.repeat(255);
  for (let id = 1; id <= 50; id++) assert.equal(await send('POST', '/pets', { name: 'a', categoryId: 1 }), 201);
  assert.equal(await send('POST', '/store/orders', { petId: 50 }), 201);
  const statuses: number[] = [];
  for (let id = 1; id <= 50; id++) statuses.push(await send('PATCH', `/pets/${id}`, { name: longest }));
  assert.deepEqual([...new Set(statuses)], [200, 507]);
  // The last bytes go to names that grow by one character.
  const fill = async (method: string, path: string) => {
    let status = 200;
    for (let length = 1; length <= 255 && status < 300; length++) {
      status = await send(method, path, { name: 'a'.repeat(length) });
    }
    return status;
  };
  for (let id = 45; id < 50; id++) await fill('PATCH', `/pets/${id}`);
  assert.deepEqual([await fill('PATCH', '/pets/50'), await fill('PUT', '/categories/1')], [507, 507]);
  assert.equal(await send('PATCH', '/store/orders/1', { status: 'cancelled' }), 200);
  assert.equal(store.read.pets.get(50)?.status, 'available');
  assert.equal(await send('PATCH', '/pets/1', { name: 'a' }), 200, 'what makes a row shorter goes on');
});

test('a key has 100,000 Idempotency-Keys at once: beyond it 429 until the oldest is a day old', async (t) => {
  const { key, fetch, store, clock } = await serviceFor(t);
  const add = (name: string, headers: Record<string, string> = { 'idempotency-key': name }) =>
    fetch('/v1/pets', { method: 'POST', headers: { ...JSON_TYPE, ...headers }, body: PET, key });
  assert.equal((await add('first')).status, 201);
  const first = store.read.replays.get('createPet k1 first');
  assert.ok(first !== undefined);
  clock.advance(1_000);
  for (let n = 1; n < MAX_REPLAYS_OF_KEY - 1; ) {
    await store.write((tx) => {
      for (let end = n + 10_000; n < end && n < MAX_REPLAYS_OF_KEY - 1; n++) {
        tx.replays.put({ ...first, id: `createPet k1 ${n}`, at: first.at + 1_000 });
      }
    });
  }
  const both = await Promise.all([add('last'), add('one-too-many')]);
  assert.deepEqual(both.map(({ status }) => status).sort(), [201, 429], 'two at once count together');
  const refused = await add('more');
  assert.equal(refused.status, 429);
  assert.match(await refused.text(), /"rate_limited","message":"this key has 100,000 Idempotency-Keys/);
  assert.equal(refused.headers.get('retry-after'), `${DAY_MS / 1_000 - 1 + 1}`);
  assert.equal((await add('first')).headers.get('idempotent-replayed'), 'true');
  assert.equal((await add('', {})).status, 201, 'without such a key');
  clock.advance(1_000 * Number(refused.headers.get('retry-after')));
  assert.equal((await add('more')).status, 201);
});

test('so many Idempotency-Keys are remembered at once: beyond it 503, and once they have ended there is room', async () => {
  const clock = new SetClock();
  const store = memoryStore({ clock });
  const key = await store.write((tx) => tx.keys.add(newKey('a')));
  const context = { store, callers: new Callers(store, 'production'), clock, maxReplays: 3 };
  const add = (idempotencyKey?: string) => {
    return createPet(
      { caller: { key, digest: 'a' }, param: '', query: '', idempotencyKey, body: Buffer.from(PET) },
      context,
    );
  };
  const refused = { code: 'unavailable', message: /too many Idempotency-Keys/, headers: ['Retry-After', '60'] };
  await add('first');
  clock.advance(1_000);
  const ends = await Promise.allSettled(['second', 'third', 'fourth'].map((name) => add(name)));
  assert.deepEqual(
    ends.map(({ status }) => status),
    ['fulfilled', 'fulfilled', 'rejected'],
    'three at once count together',
  );
  await assert.rejects(add('more'), refused);
  assert.equal((await add('first')).status, 201, 'what was made is told again');
  await add();
  assert.equal(store.read.pets.size, 4);
  clock.advance(DAY_MS - 1_000);
  await add('more');
  await assert.rejects(add('again'), refused);
  clock.advance(1_000);
  await Promise.all([add('again'), add('second')]);
  assert.equal(store.read.pets.size, 7);
});

test('a replay is given for a day', async (t) => {
  const { key, fetch, clock } = await serviceFor(t);
  const headers = { ...JSON_TYPE, 'idempotency-key': 'a' };
  const add = async () =>
    (await fetch('/v1/pets', { method: 'POST', headers, body: PET, key })).headers.get('location');
  const places = [await add()];
  for (const ms of [DAY_MS - 1, 1]) {
    clock.advance(ms);
    places.push(await add());
  }
  assert.deepEqual(places, ['/v1/pets/1', '/v1/pets/1', '/v1/pets/2']);
});

test('an animal is told with every column that is stored of it, in their order, and with all digits', () => {
  for (const categoryId of [2, 2n ** 63n - 1n]) {
    const pet: Required<Pet> = { status: 'sold', id: 1, name: 'R"x', categoryId };
    const row = TABLES.pets.read(pet);
    const withMore: Pet & { more?: string } = { ...row, more: undefined };
    assert.equal(petJson(withMore), petJson(row), 'nothing is told of a member that is not there');
    assert.equal(petJson(row), `{"id":1,"name":"R\\"x","categoryId":${categoryId},"status":"sold"}`);
  }
});
