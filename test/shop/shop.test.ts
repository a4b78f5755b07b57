/** The handlers on a store in memory, and on two that share one journal: what is decided is decided once. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../../src/http/errors.ts';
import type { Reply } from '../../src/http/reply.ts';
import { readJson } from '../../src/json/reader.ts';
import { ReplyCache } from '../../src/shop/cache.ts';
import type { Call, Handler, Shop } from '../../src/shop/call.ts';
import { putCategory } from '../../src/shop/categories.ts';
import { createOrder, updateOrder } from '../../src/shop/orders.ts';
import { createPet, getPet } from '../../src/shop/pets.ts';
import { MemoryStore } from '../../src/store/memory.ts';
import { SetClock } from '../clock.ts';
import { SharedList } from '../store/shared-journal.ts';

const caller = { id: 'k1' } as Call['caller'];

async function open(
  list = new SharedList(),
  categories: Shop['categories'] = 'open',
): Promise<Shop & { clock: SetClock }> {
  const clock = new SetClock();
  const store = await MemoryStore.open(list.journal(), { clock });
  return { store, clock, categories, lists: new ReplyCache(), animals: new ReplyCache() };
}

async function ask(shop: Shop, handler: Handler, body: string | undefined, rest: Partial<Call> = {}): Promise<Reply> {
  const json = body === undefined ? null : readJson(Buffer.from(body));
  const call = { caller, param: '', query: '', body: json, idempotencyKey: undefined, recheck: () => {}, ...rest };
  return handler(shop, call);
}

const rex = '{"name":"Rex","categoryId":9007199254740993}';
const text = ({ body }: Reply) => body.toString();
const headerOf = ({ headers }: Reply, name: string) => headers[headers.indexOf(name) + 1];
const isReplay = ({ headers }: Reply) => headers.includes('Idempotent-Replayed');
const refused = (code: string) => (error: Error) => error instanceof ApiError && error.code === code;

test('the first reply again, whatever happened to the animal and the order since', async () => {
  const shop = await open();
  const once = { idempotencyKey: '"a"' };
  const pet = await ask(shop, createPet, rex, once);
  const order = await ask(shop, createOrder, '{"petId":1}', once);
  assert.deepEqual([headerOf(pet, 'Location'), headerOf(order, 'Location')], ['/v1/pets/1', '/v1/store/orders/1']);
  await ask(shop, updateOrder, '{"status":"delivered"}', { param: '1' });
  for (const [first, handler, body] of [
    [pet, createPet, rex],
    [order, createOrder, '{"petId":1.0}'],
  ] as const) {
    const again = await ask(shop, handler, body, { idempotencyKey: 'a' });
    assert.deepEqual([text(again), headerOf(again, 'Location')], [text(first), headerOf(first, 'Location')]);
    assert.deepEqual([again.status, isReplay(first), isReplay(again)], [201, false, true]);
  }
  await assert.rejects(ask(shop, createPet, rex.replace('Rex', 'Max'), once), refused('idempotency_key_reused'));
  await assert.rejects(ask(shop, createOrder, '{"petId":2}', once), refused('idempotency_key_reused'));
  assert.equal(isReplay(await ask(shop, createPet, rex, { ...once, caller: { ...caller, id: 'k2' } })), false);
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
  assert.deepEqual([replies.map(text), replies.filter(isReplay).length], [[text(replies[0]), text(replies[0])], 1]);

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

test('for a key whose time was let pass, the date of removal comes earlier', async () => {
  const shop = await open();
  await ask(shop, createPet, rex);
  const years = (n: number) => ({ param: '1', caller: { ...caller, ahead: n * 365 * 86_400_000 } });
  assert.equal((await ask(shop, getPet, undefined, years(4))).status, 200);
  await assert.rejects(ask(shop, getPet, undefined, years(5)), refused('gone'));
});
