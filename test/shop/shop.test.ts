/** The handlers on a store in memory, and on two that share one journal; and the rows that lead to them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../../src/http/errors.ts';
import type { Reply } from '../../src/http/reply.ts';
import { readJson } from '../../src/json/reader.ts';
import { ENDPOINTS, placesOf } from '../../src/routes.ts';
import { ReplyCache } from '../../src/shop/cache.ts';
import type { Call, Handler, Shop } from '../../src/shop/call.ts';
import { putCategory } from '../../src/shop/categories.ts';
import { createOrder, updateOrder } from '../../src/shop/orders.ts';
import { createPet } from '../../src/shop/pets.ts';
import { MemoryStore } from '../../src/store/memory.ts';
import { SetClock } from '../clock.ts';
import { SharedList } from '../store/shared-journal.ts';

const caller = { id: 'k1' } as Call['caller'];

async function open(list = new SharedList()): Promise<Shop & { clock: SetClock }> {
  const clock = new SetClock();
  const store = await MemoryStore.open(list.journal(), { clock });
  return { store, clock, categories: 'open', lists: new ReplyCache(), animals: new ReplyCache() };
}

async function ask(shop: Shop, handler: Handler, body: string, rest: Partial<Call> = {}): Promise<Reply> {
  const common = { caller, param: '', query: '', idempotencyKey: undefined, recheck: () => {} };
  return handler(shop, { ...common, body: readJson(Buffer.from(body)), ...rest });
}

const rex = '{"name":"Rex","categoryId":9007199254740993}';
const headerOf = ({ headers }: Reply, name: string) => headers[headers.indexOf(name) + 1];
const isReplay = ({ headers }: Reply) => headers.includes('Idempotent-Replayed');
const refused = (code: string) => (error: Error) => error instanceof ApiError && error.code === code;

test('the first reply again, whatever happened to the animal and the order since, for a day', async () => {
  const shop = await open();
  const once = { idempotencyKey: 'a' };
  const pet = await ask(shop, createPet, rex, once);
  const order = await ask(shop, createOrder, '{"petId":1}', once);
  await ask(shop, updateOrder, '{"status":"delivered"}', { param: '1' });
  for (const [first, handler, body, place] of [
    [pet, createPet, rex, '/v1/pets/1'],
    [order, createOrder, '{"petId":1.0}', '/v1/store/orders/1'],
  ] as const) {
    const again = await ask(shop, handler, body, once);
    assert.deepEqual(
      [again.body, headerOf(again, 'Location'), headerOf(first, 'Location')],
      [first.body, place, place],
    );
    assert.deepEqual([again.status, isReplay(first), isReplay(again)], [201, false, true]);
  }
  shop.clock.advance(24 * 60 * 60 * 1_000 + 1);
  assert.equal(isReplay(await ask(shop, createPet, rex, once)), false);
});

test('two services on one journal: one thing for an Idempotency-Key, one order for an animal', async () => {
  const list = new SharedList();
  const shops = [await open(list), await open(list)];
  const both = (handler: Handler, body: string, rest?: Partial<Call>) =>
    Promise.allSettled(shops.map((shop) => ask(shop, handler, body, rest)));
  const made = await both(createPet, rex, { idempotencyKey: 'a' });
  const replies = made.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  const [{ body }] = replies;
  assert.deepEqual([replies.map((one) => one.body), replies.filter(isReplay).length], [[body, body], 1]);

  const ordered = await both(createOrder, '{"petId":1}');
  assert.deepEqual(ordered.map(({ status }) => status).sort(), ['fulfilled', 'rejected']);
  const loser = ordered.find((one) => one.status === 'rejected')!;
  assert.ok(refused('pet_unavailable')(loser.reason), String(loser.reason));
  for (const { store } of shops) assert.equal(store.read.counts().orders, 1);
});

test('a key that ended while the body came writes nothing, whatever the body says', async () => {
  const shop = await open();
  await ask(shop, createPet, rex);
  const ended = new ApiError('invalid_api_key', 'it was revoked');
  const recheck = () => {
    throw ended;
  };
  const calls: [Handler, string, string][] = [
    [createPet, rex, ''],
    [createOrder, '{"petId":1}', ''],
    [updateOrder, '{"status":"cancelled"}', '7'],
    [putCategory, '{"name":"Dogs"}', '7'],
  ];
  for (const [handler, body, param] of calls) await assert.rejects(ask(shop, handler, body, { param, recheck }), ended);
  const { pets, orders, categories } = shop.store.read.counts();
  assert.deepEqual([pets, orders, categories], [1, 0, 0]);
});

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
