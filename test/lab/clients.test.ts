/** Clients in the drill, and what grade each gets: the typed client an A, a naive loop a D or an F. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { PetstoreClient } from '../../src/client/client.ts';
import { shop } from './clients.ts';
import { REX, startLab } from './service.ts';

async function start(t: TestContext) {
  const pets = Array.from({ length: 30 }, () => ({ ...REX, status: 'available' as const }));
  const service = await startLab(t, { pets, perMinute: 60, perDay: 1_000 });
  await service.must('POST /lab/drill');
  return service;
}

const verdictsOf = (checks: { id: string; verdict: string }[]) =>
  Object.fromEntries(checks.map(({ id, verdict }) => [id, verdict]));

test('the typed client gets an A', async (t) => {
  const { clock, port, key, must, engine } = await start(t);
  let seed = 7;
  t.mock.method(Math, 'random', () => (seed = (seed * 16_807) % 2_147_483_647) / 2_147_483_647);
  const timing = { now: () => clock.now(), sleep: async (ms: number) => clock.advance(ms) };
  const store = new PetstoreClient({ baseUrl: `http://127.0.0.1:${port}/v1`, ...{ key, timing } });
  t.after(() => store.close());
  await shop({
    async listAll() {
      for await (const _ of store.listPets({ limit: 10 }));
    },
    add: async (name) => Number((await store.createPet({ name, categoryId: 1 })).id),
    order: (petId) => store.createOrder(petId),
  });
  assert.deepEqual((await must('GET /lab/faults')).json, [], 'every fault of the drill was met');
  const { grade, score, seen, checks } = (await must('GET /lab/grade')).json;
  assert.deepEqual(verdictsOf(checks), {
    ...{
      retry_after: 'pass',
      idempotency: 'pass',
      finished: 'pass',
      backoff: 'pass',
      herd: 'unseen',
      hopeless: 'pass',
    },
    ...{ reuse: 'pass', paging: 'pass', redundant: 'pass', deprecated: 'unseen', ban: 'pass' },
  });
  assert.deepEqual([grade, score, seen], ['A', 100, 95]);
  const { pets, orders } = engine.store.read.counts();
  assert.deepEqual([pets, orders], [36, 6], 'and nothing was done twice');
});

test('a naive loop gets a D or an F', async (t) => {
  const { clock, ask, lab } = await start(t);
  /** Asks again at once, whatever went wrong, thirty times. */
  const insist = async (what: string, body?: unknown) => {
    for (let tries = 0; tries < 30; tries++) {
      clock.advance(20);
      const got = await ask(what, body, { headers: { connection: 'close' } }).catch(() => undefined);
      if (got?.status === 200 || got?.status === 201) return got.json;
    }
    throw new Error('it does not work');
  };
  await shop({
    async listAll() {
      for (let after = 0; after < 30; after += 10) await insist(`GET /v1/pets?limit=10&after=${after}`);
    },
    add: async (name) => (await insist('POST /v1/pets', { name, categoryId: 1 })).id,
    order: (petId) => insist('POST /v1/store/orders', { petId }).catch(() => {}),
  }).catch(() => {});
  const { grade, checks } = lab.grade('k1');
  assert.match(String(grade), /^[DF]$/);
  const verdicts = verdictsOf(checks);
  for (const id of ['retry_after', 'idempotency', 'backoff', 'paging']) assert.equal(verdicts[id], 'fail', id);
});
