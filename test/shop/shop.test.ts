/** The handlers on two stores that share one journal, and the rows that lead to them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Reply } from '../../src/http/reply.ts';
import { ENDPOINTS, placesOf } from '../../src/routes.ts';
import { ReplyCache } from '../../src/shop/cache.ts';
import type { Call, Handler, Shop } from '../../src/shop/call.ts';
import { replayed } from '../../src/shop/idempotency.ts';
import { createOrder, updateOrder } from '../../src/shop/orders.ts';
import { createPet } from '../../src/shop/pets.ts';
import { columnsOf } from '../../src/store/changes.ts';
import { MemoryStore } from '../../src/store/memory.ts';
import type { Store } from '../../src/store/model.ts';
import { SetClock } from '../clock.ts';
import { serviceFor } from '../service.ts';
import { SharedList } from '../store/shared-journal.ts';

type Opened = Shop & { store: Store };

async function open(list: SharedList): Promise<Opened> {
  const clock = new SetClock();
  const store = await MemoryStore.open(list.journal(), { clock });
  const caches = { lists: new ReplyCache(), animals: new ReplyCache() };
  return { store, clock, categories: 'open', hasLab: false, ...caches, underWay: new Set() };
}

const CALL = { caller: { id: 'k1' } as Call['caller'], param: '', query: '', conditions: {} };
const callOf = ({ store }: Opened, body: string, idempotencyKey?: string): Call => {
  return { ...CALL, body: Buffer.from(body), idempotencyKey, write: (decide) => store.write(decide) };
};

test('two services on one journal: one thing for an Idempotency-Key, one order for an animal', async () => {
  const list = new SharedList();
  const shops = [await open(list), await open(list)];
  const both = (handler: Handler, body: string, idempotencyKey?: string) =>
    Promise.allSettled(shops.map(async (shop) => handler(shop, callOf(shop, body, idempotencyKey))));
  const made = await both(createPet, '{"name":"Rex","categoryId":9007199254740993}', 'a');
  const replies = made.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  const [{ body }] = replies;
  const again = replies.filter(({ headers }) => headers.includes('Idempotent-Replayed'));
  assert.deepEqual([replies.map((one) => one.body), again.length], [[body, body], 1]);

  const ordered = await both(createOrder, '{"petId":1}');
  assert.deepEqual(ordered.map(({ status }) => status).sort(), ['fulfilled', 'rejected']);
  const loser = ordered.find((one) => one.status === 'rejected')!;
  assert.equal(loser.reason.code, 'pet_unavailable', String(loser.reason));
  for (const { store } of shops) assert.equal(store.read.counts().orders, 1);
});

test('what all is cleared behind, in the same batch, is answered as it was decided', async () => {
  const shop = await open(new SharedList());
  const pet = '{"name":"Rex","categoryId":1}';
  const ask = async () => [
    await createPet(shop, callOf(shop, pet, 'a')),
    await createOrder(shop, callOf(shop, '{"petId":1}', 'b')),
  ];
  const first = await ask();
  const again = [createPet(shop, callOf(shop, pet, 'a')), createOrder(shop, callOf(shop, '{"petId":1}', 'b'))];
  const closed = updateOrder(shop, { ...callOf(shop, '{"status":"delivered"}'), param: '1' });
  await shop.store.write(() => ({ op: 'fill', at: 1, categories: [], pets: columnsOf([]) }));
  assert.deepEqual(await Promise.all(again), first.map(replayed));
  assert.match(String((await closed).body), /"status":"delivered"/);
  assert.deepEqual(shop.store.read.counts(), { pets: 0, orders: 0, categories: 0, keys: 0 });
});

for (const [most, chars, fits] of [
  ['8 MiB in all, with their lines', 100_000, Math.floor((8 * 1024 * 1024) / 100_026)],
  ['a thousand', 10, 1_000],
] as const) {
  test(`replies are kept up to ${most}; then all of them go`, () => {
    const cache = new ReplyCache();
    let made = 0;
    const isCached = (asked: string) => {
      const before = made;
      cache.cached(asked, 0, () => {
        made++;
        return new Reply(200, ['A', 'b'], 'x'.repeat(chars), '');
      });
      return made === before;
    };
    for (let i = 0; i < fits; i++) isCached(`${i}`);
    assert.deepEqual([made, isCached('0'), isCached(`${fits - 1}`)], [fits, true, true]);
    assert.ok(!isCached('one more'));
    assert.deepEqual([isCached('one more'), isCached('0')], [true, false], 'the newest is there');
  });
}

test('whatever the last segment is called, all methods stand at one place; another parameter is no row', () => {
  const [some] = ENDPOINTS;
  const places = placesOf([
    { ...some, method: 'PUT', path: '/v1/categories/{categoryId}' },
    { ...some, method: 'GET', path: '/v1/categories/{id}' },
  ]);
  assert.deepEqual([...places.keys()], ['/v1/categories/']);
  assert.equal(places.get('/v1/categories/')?.allow, 'GET, HEAD, PUT, OPTIONS');
  const path = '/v1/pets/{petId}/orders';
  assert.throws(() => placesOf([{ ...some, path }]), new Error(`${path}: only the last segment can be a parameter`));
});

/** A body that each write to one resource takes. */
const BODIES: Record<string, object> = { putCategory: { name: 'Dogs' }, updateOrder: { status: 'delivered' } };

test('every GET has an ETag and gives 304 for it; every write to one resource is refused under the ETag of another state', async (t) => {
  const { key, fetch } = await serviceFor(t);
  const ask = async (method: string, path: string, condition?: string, body?: object) => {
    const headers = {
      'content-type': 'application/json',
      ...(condition && { [condition.split(': ')[0]]: condition.split(': ')[1] }),
    };
    const reply = await fetch(path.replace(/\{\w+\}/, '1'), {
      method,
      headers,
      key,
      body: body && JSON.stringify(body),
    });
    await reply.arrayBuffer();
    return [reply.status, reply.headers.get('etag')] as const;
  };
  assert.equal((await ask('PUT', '/v1/categories/1', undefined, { name: 'Cats' }))[0], 201);
  assert.equal((await ask('POST', '/v1/pets', undefined, { name: 'Rex', categoryId: 1 }))[0], 201);
  assert.equal((await ask('POST', '/v1/store/orders', undefined, { petId: 1 }))[0], 201);
  for (const { name, method, path } of ENDPOINTS) {
    if (method === 'GET') {
      const [status, etag] = await ask(method, path);
      assert.ok(status === 200 && etag !== null, name);
      assert.deepEqual(await ask(method, path, `If-None-Match: ${etag}`), [304, etag], name);
      assert.deepEqual((await ask(method, path, 'If-Match: "other"'))[0], 412, name);
    } else if (path.endsWith('}')) {
      const body = BODIES[name] ?? assert.fail(`${name}: say above which body it takes`);
      assert.equal((await ask(method, path, 'If-Match: "other"', body))[0], 412, name);
    }
  }
});
