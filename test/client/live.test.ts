/** Against the service itself, through a front that cuts: nothing is made twice, and nobody is banned. */
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import test from 'node:test';
import { type Pet, type PetstoreClient, PetstoreError } from '../../src/client/client.ts';
import type { Plan } from '../../src/store/model.ts';
import { startService } from '../service.ts';
import { all, type Fault, failure, harness, html, refusal } from './front.ts';

const HARM: Fault[] = [
  ...(['lost', 'cut', 'half', 'garbage'] as const),
  refusal(503, 'unavailable', { 'Retry-After': '1' }),
  refusal(503, 'outcome_unknown'),
  refusal(429, 'rate_limited', { 'Retry-After': '3' }),
  html(502),
];

async function live(t: test.TestContext, fault: () => Fault, plan?: Plan) {
  const service = await startService();
  const { text, key } = await service.makeKey(plan);
  // All calls share one clock, so each one's waits are time that passes for all: the budget is to outlast them.
  const shared = { time: service.clock, budgetMs: 82_800_000 };
  const made = await harness(t, fault, { key: text, behind: service.url, ...shared });
  t.after(async () => {
    await service.close();
    assert.deepEqual(service.logged, []);
  });
  return { ...made, strikes: () => service.limiter.look(key).strikes };
}

type Results = Map<string, Pet | PetstoreError>;
const CATEGORY = 2n ** 60n;

async function makeMany(client: PetstoreClient, count: number): Promise<Results> {
  const one = async (name: string): Promise<[string, Pet | PetstoreError]> => {
    const result = await client.createPet({ name, categoryId: CATEGORY }).catch((error) => error);
    if (result instanceof Error && !(result instanceof PetstoreError)) throw result;
    return [name, result];
  };
  return new Map(await Promise.all(Array.from({ length: count }, (_, i) => one(`pet ${i}`))));
}

/** Every call resolved made one animal, every one in doubt at most one, every refused one none. */
async function checkOnce(client: PetstoreClient, results: Results): Promise<{ sure: number; doubtful: number }> {
  const pets = await all(client.listPets());
  const tally = { sure: 0, doubtful: 0 };
  for (const [name, result] of results) {
    const kept = pets.filter((pet) => pet.name === name);
    if (!(result instanceof PetstoreError)) {
      assert.deepEqual(kept, [result], name);
      tally.sure++;
    } else if (result.outcomeUnknown) {
      assert.ok(kept.length <= 1, `${name} is there ${kept.length} times`);
      tally.doubtful++;
    } else assert.equal(kept.length, 0, `${name} was refused, and is there`);
  }
  for (const { name } of pets) assert.ok(results.has(name), `nobody made ${name}`);
  return tally;
}

test('many POSTs through cuts of every kind: nothing is made twice', async (t) => {
  const { client, front } = await live(t, () => (randomInt(3) === 0 ? 'pass' : HARM[randomInt(HARM.length)]));
  const results = await makeMany(client, 200);
  front.fault = () => 'pass';
  const tally = await checkOnce(client, results);
  t.diagnostic(`${front.asked.length} requests, ${JSON.stringify(tally)}`);
  assert.ok(tally.sure > 100 && tally.doubtful > 0, JSON.stringify(tally));

  // Who calls again with the key of the error learns what became of it.
  for (const [name, result] of results) {
    if (!(result instanceof PetstoreError)) continue;
    results.set(
      name,
      await client.createPet({ name, categoryId: CATEGORY }, { idempotencyKey: result.idempotencyKey }),
    );
  }
  assert.deepEqual(await checkOnce(client, results), { sure: 200, doubtful: 0 });
});

test('lists and categories through cuts are complete and exact', async (t) => {
  // Odd: a reply of each kind of harm, even: the service's.
  const { client, front } = await live(t, () => {
    const { length } = front.asked;
    return length % 2 === 0 ? 'pass' : HARM[((length - 1) / 2) % HARM.length];
  });
  const ids = ['-9223372036854775808', -5, 0, 1, '9007199254740993', '9223372036854775807'];
  const named = ids.map((id) => ({ id, name: `${id}` }));
  for (const one of named) assert.deepEqual(await client.putCategory(one.id, one.name), one);
  assert.deepEqual(await all(client.listCategories({ limit: 2 })), named);
});

test('far over the limit: all are made in time, without a refusal', async (t) => {
  const { client, front, strikes } = await live(t, () => 'pass', 'free'); // 60 a minute
  const results = await makeMany(client, 150);
  assert.deepEqual(await checkOnce(client, results), { sure: 150, doubtful: 0 });
  assert.deepEqual([front.asked.length, strikes()], [150 + 2, 0], 'and two pages');
});

test('an ETag of the service guards a change, and saves a page that is still as it was', async (t) => {
  const { client } = await live(t, () => 'pass');
  const { etag } = await client.putCategory(1, 'Dogs').withResponse();
  assert.deepEqual(await client.putCategory(1, 'Good dogs', { ifMatch: etag }), { id: 1, name: 'Good dogs' });
  const late = await failure(client.putCategory(1, 'Bad dogs', { ifMatch: etag }));
  assert.deepEqual([late.code, late.status, late.outcomeUnknown], ['precondition_failed', 412, false]);

  const listing = client.listCategories();
  const { response, items } = await listing.page();
  assert.deepEqual(items, [{ id: 1, name: 'Good dogs' }]);
  assert.equal(await listing.page(response.etag), undefined);
  await client.putCategory(2, 'Cats');
  assert.equal((await listing.page(response.etag))?.items.length, 2);

  const { id } = await client.createPet({ name: 'Rex', categoryId: 1 });
  const order = await client.createOrder(id);
  const known = await client.getOrder(order.id).withResponse();
  assert.equal((await client.updateOrder(order.id, 'delivered', { ifMatch: known.etag })).status, 'delivered');
});
