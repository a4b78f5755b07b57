/** Against the program itself, through a proxy that cuts: nothing is created twice, and no limit is overrun. */
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import test from 'node:test';
import { serving, temporary, without } from '../../program.ts';
import { type Pet, type PetstoreClient, PetstoreError } from '../client.ts';
import { all, type Fault, failure, harness, html, refusal, retryAfter } from './proxy.ts';

const HARM: Fault[] = [
  ...(['lost', 'cut', 'half', 'garbage'] as const),
  refusal(503, 'unavailable', retryAfter(1)),
  refusal(503, 'outcome_unknown'),
  refusal(429, 'rate_limited', retryAfter(3)),
  html(502),
];

async function live(t: test.TestContext, fault: () => Fault, plan = 'business') {
  const data = await temporary(t);
  const lab = without('lab') ? [] : ['--lab', '--environment', 'staging'];
  const { url, key } = await serving(t, [...lab, '--data', data, '--first-key', plan]);
  const behind = new URL(url).origin;
  /** The waits of the client are time that passes for the service too, where that matters: its lab lets it pass. */
  const sleep = async (ms: number) => {
    if (ms > 10_000 && !without('lab')) {
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
      const body = JSON.stringify({ advance: `${Math.ceil(ms / 1_000)}s` });
      assert.equal((await fetch(`${behind}/lab/clock`, { method: 'POST', headers, body })).status, 200);
    }
    made.time.now += ms;
  };
  // All calls share one clock, so each one's waits are time that passes for all: the budget is to outlast them.
  const made = await harness(t, fault, { key, behind, sleep, budgetMs: 82_800_000 });
  return made;
}

type Results = Map<string, Pet | PetstoreError>;
const CATEGORY = 2n ** 60n;

async function createMany(client: PetstoreClient, count: number): Promise<Results> {
  const one = async (name: string): Promise<[string, Pet | PetstoreError]> => {
    const result = await client.createPet({ name, categoryId: CATEGORY }).catch((error) => error);
    if (result instanceof Error && !(result instanceof PetstoreError)) throw result;
    return [name, result];
  };
  return new Map(await Promise.all(Array.from({ length: count }, (_, n) => one(`pet ${n}`))));
}

/** Every call that resolved created one animal, every one in doubt at most one, every refused one none. */
async function checkOnce(client: PetstoreClient, results: Results): Promise<{ sure: number; doubtful: number }> {
  const pets = await all(client.listPets());
  const tally = { sure: 0, doubtful: 0 };
  for (const [name, result] of results) {
    const found = pets.filter((pet) => pet.name === name);
    if (!(result instanceof PetstoreError)) {
      assert.deepEqual(found, [result], name);
      tally.sure++;
    } else if (result.outcomeUnknown) {
      assert.ok(found.length <= 1, `${name} is there ${found.length} times`);
      tally.doubtful++;
    } else assert.equal(found.length, 0, `${name} was refused, and is there`);
  }
  for (const { name } of pets) assert.ok(results.has(name), `nobody created ${name}`);
  return tally;
}

test('many POSTs through cuts of every kind: nothing is created twice', async (t) => {
  const { client, proxy } = await live(t, () => (randomInt(3) === 0 ? 'pass' : HARM[randomInt(HARM.length)]));
  const results = await createMany(client, 100);
  proxy.fault = () => 'pass';
  const tally = await checkOnce(client, results);
  t.diagnostic(`${proxy.received.length} requests, ${JSON.stringify(tally)}`);
  assert.ok(tally.sure > 50 && tally.doubtful > 0, JSON.stringify(tally));
  // A new call with the key of the error shows what became of it.
  for (const [name, result] of results) {
    if (!(result instanceof PetstoreError)) continue;
    const { idempotencyKey } = result;
    results.set(name, await client.createPet({ name, categoryId: CATEGORY }, { idempotencyKey }));
  }
  assert.deepEqual(await checkOnce(client, results), { sure: 100, doubtful: 0 });
});

test('lists and categories through cuts are complete and exact', async (t) => {
  // Odd: a reply of each kind of harm, even: the service's.
  const { client, proxy } = await live(t, () => {
    const { length } = proxy.received;
    return length % 2 === 0 ? 'pass' : HARM[((length - 1) / 2) % HARM.length];
  });
  const ids = ['-9223372036854775808', -5, 0, 1, '9007199254740993', '9223372036854775807'];
  const categories = ids.map((id) => ({ id, name: `${id}` }));
  for (const one of categories) assert.deepEqual(await client.putCategory(one.id, one.name), one);
  assert.deepEqual(await all(client.listCategories({ limit: 2 })), categories);
});

test('far over the limit: all are created in time, without a refusal', { skip: without('lab') }, async (t) => {
  const { client, proxy } = await live(t, () => 'pass', 'free'); // 60 a minute
  const results = await createMany(client, 150);
  assert.deepEqual(await checkOnce(client, results), { sure: 150, doubtful: 0 });
  assert.equal(proxy.received.length, 150 + 2, 'and two pages');
});

test('an ETag of the service guards changes and a removal, and saves a page that is still as it was', async (t) => {
  const { client, proxy } = await live(t, () => 'pass');
  const { etag } = await client.putCategory(1, 'Dogs').withResponse();
  assert.deepEqual(await client.putCategory(1, 'Good dogs', { ifMatch: etag }), { id: 1, name: 'Good dogs' });
  const bad = await failure(client.putCategory(1, 'Bad dogs', { ifMatch: etag }));
  assert.deepEqual([bad.code, bad.status, bad.outcomeUnknown], ['precondition_failed', 412, false]);
  const listing = client.listCategories();
  const { response } = await listing.page();
  assert.equal(await listing.page(response.etag), undefined);

  const { id } = await client.createPet({ name: 'Rex', categoryId: 1 });
  const renamed = await client.updatePet(id, { name: 'Max' }).withResponse();
  assert.deepEqual(renamed.data, { id, name: 'Max', categoryId: 1, status: 'available' });
  const moved = await client.updatePet(id, { categoryId: CATEGORY }, { ifMatch: renamed.etag }).withResponse();
  assert.deepEqual(moved.data, { id, name: 'Max', categoryId: String(CATEGORY), status: 'available' });
  const late = await failure(client.deletePet(id, { ifMatch: renamed.etag }));
  assert.deepEqual([late.code, late.outcomeUnknown], ['precondition_failed', false]);
  const order = await client.createOrder(id);
  assert.equal((await failure(client.deletePet(id))).code, 'pet_unavailable');
  await client.updateOrder(order.id, 'cancelled');
  assert.equal(await client.deletePet(id), undefined);

  const next = await client.createPet({ name: 'Rex', categoryId: 1 });
  let isFirst = true;
  proxy.fault = () => {
    if (!isFirst) return 'pass';
    isFirst = false;
    return 'cut';
  };
  const { code, tries, outcomeUnknown } = await failure(client.deletePet(next.id));
  assert.deepEqual([code, tries, outcomeUnknown], ['not_found', 2, true], 'gone, by the first try');
});
