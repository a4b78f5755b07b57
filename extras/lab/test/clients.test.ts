/** The typed client in the drill, in set time. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seeded } from '../../../test/random.ts';
import { without } from '../../program.ts';
import { shop } from './clients.ts';
import { REX, startLab } from './service.ts';

/** What the drill asks of the client, which may not be here: then its own types are not either. */
interface Client {
  listPets(options: { limit: number }): AsyncIterable<unknown>;
  createPet(pet: { name: string; categoryId: number }): Promise<{ id: unknown }>;
  createOrder(petId: number): Promise<unknown>;
  close(): void;
}

test('the typed client gets an A, and does nothing twice', { skip: without('client') }, async (t) => {
  const { PetstoreClient } = await import(new URL('../../client/client.ts', import.meta.url).href);
  const pets = Array.from({ length: 30 }, () => ({ ...REX, status: 'available' as const }));
  const { clock, port, key, must, store } = await startLab(t, { pets, perMinute: 60, perDay: 1_000 });
  await must('POST /lab/drill');
  t.mock.method(Math, 'random', seeded(7));
  const timing = { now: () => clock.now(), sleep: async (ms: number) => clock.advance(ms) };
  const client: Client = new PetstoreClient({ baseUrl: `http://127.0.0.1:${port}/v1`, ...{ key, timing } });
  t.after(() => client.close());
  await shop({
    async listAll() {
      for await (const _ of client.listPets({ limit: 10 }));
    },
    add: async (name) => Number((await client.createPet({ name, categoryId: 1 })).id),
    order: (petId) => client.createOrder(petId),
  });
  assert.deepEqual((await must('GET /lab/faults')).json, [], 'every fault of the drill was met');
  const { grade, score, seen, checks } = (await must('GET /lab/grade')).json;
  assert.deepEqual([grade, score, seen], ['A', 100, 100], JSON.stringify(checks, null, 1));
  assert.deepEqual([store.read.pets.size, store.read.orders.size], [36, 6]);
});
