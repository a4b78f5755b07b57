/** Against the service itself, through a front that cuts: nothing is made twice, and nobody is banned. */
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import test from 'node:test';
import { type Pet, type PetstoreClient, PetstoreError } from '../../src/client/client.ts';
import type { Plan } from '../../src/store/model.ts';
import { serving, temporary } from '../program.ts';
import { startService } from '../service.ts';
import { type Fault, type Front, refusal } from './front.ts';
import { all, harness, Time } from './harness.ts';

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

async function live(t: test.TestContext, fault: Front['fault'], plan?: Plan) {
  const time = new Time();
  const service = await startService({ clock: time });
  const { text, key } = await service.makeKey(plan);
  // All calls share one clock, so each one's waits are time that passes for all: the budget is to outlast them.
  const made = await harness(t, fault, { key: text, time, budgetMs: 2 ** 30, behind: service.url });
  t.after(async () => {
    await service.close();
    assert.deepEqual(service.logged, []);
  });
  return { ...made, strikes: () => service.limiter.look(key).strikes };
}

type Results = Map<string, Pet | PetstoreError>;

async function makeMany(client: PetstoreClient, count: number): Promise<Results> {
  const results: Results = new Map();
  const one = async (name: string) => {
    const result = await client.createPet({ name, categoryId: 2n ** 60n }).catch((error) => error);
    if (result instanceof Error && !(result instanceof PetstoreError)) throw result;
    results.set(name, result);
  };
  await Promise.all(Array.from({ length: count }, (_, i) => one(`pet ${i}`)));
  return results;
}

/** Every call resolved made one animal, every one in doubt at most one, every refused one none. */
async function checkOnce(client: PetstoreClient, results: Results): Promise<{ sure: number; doubtful: number }> {
  const byName = new Map<string, Pet[]>();
  for await (const pet of client.listPets()) byName.set(pet.name, [...(byName.get(pet.name) ?? []), pet]);
  const tally = { sure: 0, doubtful: 0 };
  for (const [name, result] of results) {
    const kept = byName.get(name) ?? [];
    if (!(result instanceof PetstoreError)) {
      assert.deepEqual(kept, [result], name);
      tally.sure++;
    } else if (result.outcomeUnknown) {
      assert.ok(kept.length <= 1, `${name} is there ${kept.length} times`);
      tally.doubtful++;
    } else assert.equal(kept.length, 0, `${name} was refused, and is there`);
    byName.delete(name);
  }
  assert.equal(byName.size, 0, `nobody made ${[...byName.keys()]}`);
  return tally;
}

test('hundreds of POSTs through cuts of every kind: nothing is made twice', async (t) => {
  const { client, front } = await live(t, () => (randomInt(5) < 2 ? 'pass' : HARM[randomInt(HARM.length)]));
  const results = await makeMany(client, 400);
  front.fault = () => 'pass';
  const tally = await checkOnce(client, results);
  t.diagnostic(`${front.asked.length} requests, ${JSON.stringify(tally)}`);
  assert.ok(tally.sure > 200 && tally.doubtful > 0, JSON.stringify(tally));

  // Who calls again with the key of the error learns what became of it.
  for (const [name, result] of results) {
    if (!(result instanceof PetstoreError)) continue;
    const { idempotencyKey } = result;
    results.set(name, await client.createPet({ name, categoryId: 2n ** 60n }, { idempotencyKey }));
  }
  assert.deepEqual(await checkOnce(client, results), { sure: 400, doubtful: 0 });
});

test('lists and categories through cuts are complete and exact', async (t) => {
  // Odd: a reply of each kind of harm, even: the service's.
  const { client, front } = await live(t, () => {
    const { length } = front.asked;
    return length % 2 === 0 ? 'pass' : HARM[((length - 1) / 2) % HARM.length];
  });
  const ids = ['-9223372036854775808', -5, 0, 1, '9007199254740993', '9223372036854775807'];
  for (const id of ids) assert.deepEqual(await client.putCategory(id, `${id}`), { id, name: `${id}` });
  const listed = await all(client.listCategories({ limit: 2 }));
  assert.deepEqual(
    listed.map(({ id }) => id),
    ids,
  );
});

test('far over the limit: all are made in time, without a refusal', async (t) => {
  const { client, front, strikes } = await live(t, () => 'pass', 'free');
  const results = await makeMany(client, 400);
  assert.deepEqual(await checkOnce(client, results), { sure: 400, doubtful: 0 });
  assert.deepEqual([front.asked.length - 4, strikes()], [400, 0]);
});

test('a service that is killed and started again under the calls: nothing is lost, nothing is made twice', async (t) => {
  const data = await temporary(t);
  const first = await serving(t, ['--data', data, '--first-key', 'business']);
  const timing = { sleep: () => new Promise((resolve) => setTimeout(resolve, 2)) };
  const { client, front } = await harness(t, () => 'pass', { key: first.key, behind: first.url, timing });
  let back: Promise<unknown> | undefined;
  const again = async () => {
    await first.kill();
    front.behind = (await serving(t, ['--data', data])).url;
  };
  front.fault = async () => {
    if (front.asked.length === 60) back = again();
    // From then on whatever is sent waits for the new one, as behind a balancer; what was under way is cut.
    await back;
    return 'pass' as const;
  };
  const results = await makeMany(client, 200);
  assert.deepEqual(await checkOnce(client, results), { sure: 200, doubtful: 0 });
  assert.ok(front.asked.length > 200, 'something was under way when it was killed');
});
