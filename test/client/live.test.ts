/** Against the service itself, through a front that cuts: nothing is made twice, and nobody is banned. */
import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import { type Pet, PetstoreClient, PetstoreError } from '../../src/client/client.ts';
import { serving, temporary } from '../program.ts';
import { type ServiceOptions, startService } from '../service.ts';
import { type Fault, type Front, refusal } from './front.ts';
import { all, harness, Time } from './harness.ts';

const SEED = Number(process.env.PETSTORE_TEST_SEED ?? Math.floor(Math.random() * 2 ** 32));

/** The same numbers for the same seed. */
function randomFrom(seed: number): () => number {
  let last = (seed % 2_147_483_646) + 1;
  return () => (last = (last * 16_807) % 2_147_483_647) / 2_147_483_647;
}

const HARM: Fault[] = [
  'lost',
  'cut',
  'half',
  'garbage',
  refusal(503, 'unavailable', { 'Retry-After': '1' }),
  refusal(503, 'outcome_unknown'),
  refusal(429, 'rate_limited', { 'Retry-After': '3' }),
  { status: 502, headers: { 'content-type': 'text/html' }, body: '<h1>Bad gateway</h1>' },
];

/** Does harm to this share of the requests. */
function harmful(random: () => number, share: number): Front['fault'] {
  return () => (random() < share ? HARM[Math.floor(random() * HARM.length)] : 'pass');
}

/** A service, a client behind a front that does harm, and one with the same key that asks it directly. */
async function live(t: TestContext, fault: Front['fault'], options: ServiceOptions & { tries?: number } = {}) {
  const time = new Time();
  const service = await startService({ ...options, clock: time });
  const { text } = await service.makeKey();
  // All calls share one clock, so each one's waits are time that passes for all: the budget is to outlast them.
  const wait = { clock: time, budgetMs: 2 ** 30 };
  const made = await harness(t, fault, { key: text, tries: options.tries, ...wait }, service.url);
  const direct = new PetstoreClient({ baseUrl: `${service.url}/v1`, key: text, ...wait });
  t.after(async () => {
    await direct.close();
    await service.close();
    assert.deepEqual(service.logged, []);
  });
  return { ...made, direct };
}

/** Every call resolved made one animal, every one in doubt at most one, every refused one none. */
function checkOnce(pets: Pet[], results: Map<string, Pet | PetstoreError>): { sure: number; doubtful: number } {
  const byName = new Map<string, Pet[]>();
  for (const pet of pets) byName.set(pet.name, [...(byName.get(pet.name) ?? []), pet]);
  const tally = { sure: 0, doubtful: 0 };
  for (const [name, result] of results) {
    const kept = byName.get(name) ?? [];
    if (!(result instanceof PetstoreError)) {
      assert.deepEqual(kept, [result], `seed ${SEED}: ${name}`);
      tally.sure++;
    } else if (result.outcomeUnknown) {
      assert.ok(kept.length <= 1, `seed ${SEED}: ${name} is there ${kept.length} times`);
      tally.doubtful++;
    } else assert.equal(kept.length, 0, `seed ${SEED}: ${name} was refused, and is there`);
    byName.delete(name);
  }
  assert.equal(byName.size, 0, `seed ${SEED}: nobody made ${[...byName.keys()]}`);
  return tally;
}

async function makeMany(client: PetstoreClient, count: number): Promise<Map<string, Pet | PetstoreError>> {
  const results = new Map<string, Pet | PetstoreError>();
  const one = async (name: string) => {
    const result = await client.createPet({ name, categoryId: 2n ** 60n }).catch((error) => error);
    if (result instanceof Error && !(result instanceof PetstoreError)) throw result;
    results.set(name, result);
  };
  await Promise.all(Array.from({ length: count }, (_, i) => one(`pet ${i}`)));
  return results;
}

test('hundreds of POSTs through cuts of every kind: nothing is made twice', async (t) => {
  const { client, direct, front } = await live(t, harmful(randomFrom(SEED), 0.5), { tries: 3 });
  const results = await makeMany(client, 400);
  const tally = checkOnce(await all(direct.listPets()), results);
  t.diagnostic(`seed ${SEED}: ${front.asked.length} requests, ${JSON.stringify(tally)}`);
  assert.ok(tally.sure > 200 && tally.doubtful > 0, `seed ${SEED}: ${JSON.stringify(tally)}`);

  // Who calls again with the key of the error learns what became of it.
  front.fault = () => 'pass';
  for (const [name, result] of results) {
    if (!(result instanceof PetstoreError)) continue;
    const { idempotencyKey } = result;
    results.set(name, await client.createPet({ name, categoryId: 2n ** 60n }, { idempotencyKey }));
  }
  assert.deepEqual(checkOnce(await all(direct.listPets()), results), { sure: 400, doubtful: 0 });
});

test('lists and categories through cuts are complete and exact', async (t) => {
  const { client } = await live(t, harmful(randomFrom(SEED + 1), 0.4), { tries: 40 });
  const ids = ['-9223372036854775808', -5, 0, 1, '9007199254740993', '9223372036854775807'];
  for (const id of ids) assert.deepEqual(await client.putCategory(id, `${id}`), { id, name: `${id}` });
  assert.deepEqual(
    (await all(client.listCategories({ limit: 2 }))).map(({ id }) => id),
    ids,
  );
});

test('far over the limit: all are made in time, without a refusal', async (t) => {
  const time = new Time();
  const service = await startService({ clock: time });
  t.after(() => service.close());
  const { text, key } = await service.makeKey('free');
  const common = { key: text, clock: time, tries: 20, budgetMs: 10 * 60_000 };
  const { client, front } = await harness(t, () => 'pass', common, service.url);
  const results = await makeMany(client, 400);
  assert.deepEqual(checkOnce(await all(client.listPets()), results), { sure: 400, doubtful: 0 });
  assert.deepEqual([front.asked.length - 4, service.limiter.look(key).strikes], [400, 0]);
});

test('a service that is killed and started again under the calls: nothing is lost, nothing is made twice', async (t) => {
  const data = await temporary(t);
  const first = await serving(t, ['--data', data, '--first-key', 'business']);
  const sleep = () => new Promise((resolve) => setTimeout(resolve, 2));
  const options = { key: first.key, tries: 12, clock: { now: () => performance.now(), sleep } };
  const { client, front } = await harness(t, () => 'pass', options, first.url);
  let back: Promise<unknown> | undefined;
  const again = async () => {
    await first.kill();
    const second = await serving(t, ['--data', data]);
    front.behind = second.url;
  };
  front.fault = async () => {
    if (front.asked.length === 60) back = again();
    // From then on whatever is sent waits for the new one, as behind a balancer; what was under way is cut.
    if (back !== undefined) await back;
    return 'pass' as const;
  };
  const results = await makeMany(client, 200);
  assert.deepEqual(checkOnce(await all(client.listPets()), results), { sure: 200, doubtful: 0 });
  assert.ok(front.asked.length > 200, 'something was under way when it was killed');
});
