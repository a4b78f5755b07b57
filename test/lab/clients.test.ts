/** Clients in the drill, and what grade each gets: the typed client an A, a naive loop a D or an F. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PetstoreClient } from '../../src/client/client.ts';
import { type Shopper, shop } from './clients.ts';
import { type LabService, REX, startLab } from './service.ts';

const PETS = Array.from({ length: 30 }, () => ({ ...REX, status: 'available' as const }));
const content = { categories: [], pets: PETS };

const verdictsOf = (checks: { id: string; verdict: string }[]) =>
  Object.fromEntries(checks.map(({ id, verdict }) => [id, verdict]));

async function drilled(service: LabService, key: string, client: Shopper) {
  await service.must('POST /lab/reset', { key });
  await service.must('POST /lab/drill', { key });
  await shop(client);
  const { json } = await service.must('GET /lab/grade', { key });
  return { ...json, left: (await service.must('GET /lab/faults', { key })).json };
}

test('the typed client gets an A', async (t) => {
  const service = await startLab(t, { content });
  const { clock } = service;
  const key = await service.makeKey({ perMinute: 60, perDay: 1_000 });
  let seed = 7;
  t.mock.method(Math, 'random', () => (seed = (seed * 16_807) % 2_147_483_647) / 2_147_483_647);
  const timing = { now: () => clock.now(), sleep: async (ms: number) => clock.advance(ms) };
  const store = new PetstoreClient({ baseUrl: `${service.url}/v1`, ...{ key, timing } });
  t.after(() => store.close());
  const graded = await drilled(service, key, {
    async listAll() {
      for await (const _ of store.listPets({ limit: 10 }));
    },
    add: async (name) => Number((await store.createPet({ name, categoryId: 1 })).id),
    order: (petId) => store.placeOrder(petId),
  });
  assert.deepEqual(graded.left, [], 'every fault of the drill was met');
  assert.deepEqual(verdictsOf(graded.checks), {
    ...{ retry_after: 'pass', idempotency: 'pass', backoff: 'pass', herd: 'unseen', hopeless: 'pass' },
    ...{ reuse: 'pass', paging: 'pass', redundant: 'pass', deprecated: 'unseen', ban: 'pass' },
  });
  assert.deepEqual([graded.grade, graded.score, graded.seen], ['A', 100, 90]);
  const { pets, orders } = service.engine.store.read.counts();
  assert.deepEqual([pets, orders], [36, 6], 'and nothing was done twice');
});

test('a naive loop gets a D or an F', async (t) => {
  const service = await startLab(t, { content });
  const key = await service.makeKey({ perMinute: 60, perDay: 1_000 });
  /** Asks again at once, whatever went wrong, thirty times. */
  const insist = async (what: string, body?: unknown) => {
    for (let tries = 0; tries < 30; tries++) {
      service.clock.advance(50);
      const got = await service.ask(what, { key, body, headers: { connection: 'close' } }).catch(() => undefined);
      if (got?.status === 200 || got?.status === 201) return got.json;
    }
    throw new Error('it does not work');
  };
  const graded = await drilled(service, key, {
    async listAll() {
      for (let after = 0; after < 30; after += 10) await insist(`GET /v1/pets?limit=10&after=${after}`);
    },
    add: async (name) => (await insist('POST /v1/pets', { name, categoryId: 1 })).id,
    order: (petId) => insist('POST /v1/store/orders', { petId }).catch(() => {}),
  }).catch(() => service.lab.grade('k1'));
  assert.match(graded.grade, /[DF]/);
  const verdicts = verdictsOf(graded.checks);
  for (const id of ['retry_after', 'idempotency', 'backoff', 'paging']) assert.equal(verdicts[id], 'fail', id);
});
