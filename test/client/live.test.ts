/** Against the service itself, through a front that cuts: nothing is made twice, and nobody is banned. */
import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import { type Pet, PetstoreClient, PetstoreError } from '../../src/client/client.ts';
import { serving, temporary } from '../program.ts';
import { type ServiceOptions, startService, type TestService } from '../service.ts';
import { type Fault, type Front, refusal } from './front.ts';
import { type Harness, harness, Time } from './harness.ts';

const SEED = Number(process.env.PETSTORE_TEST_SEED ?? Math.floor(Math.random() * 2 ** 32));

/** mulberry32: the same numbers for the same seed. */
function randomFrom(seed: number): () => number {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let mixed = Math.imul(seed ^ (seed >>> 15), seed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
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

interface Live extends Harness {
  service: TestService;
  /** The same key, without the front. */
  direct: PetstoreClient;
}

async function live(t: TestContext, fault: Front['fault'], options: ServiceOptions & { tries?: number } = {}) {
  const time = new Time();
  const service = await startService({ ...options, clock: time });
  const { text } = await service.makeKey();
  // All calls share one clock, so each one's waits are time that passes for all: the budget is to outlast them.
  const wait = { clock: time, sleep: time.sleep, random: () => 0.5, budgetMs: 2 ** 31 - 1 };
  const made = await harness(t, fault, { key: text, tries: options.tries, ...wait }, service.url);
  const direct = new PetstoreClient({ baseUrl: `${service.url}/v1`, key: text, ...wait });
  t.after(async () => {
    await direct.close();
    await service.close();
    assert.deepEqual(service.logged, []);
  });
  return { ...made, time, service, direct } satisfies Live;
}

async function all<T>(listing: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of listing) items.push(item);
  return items;
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

test('orders through cuts: an animal is ordered once, an order is closed once', async (t) => {
  const { client, direct } = await live(t, harmful(randomFrom(SEED + 1), 0.4), { tries: 40 });
  const statuses = ['delivered', 'cancelled'] as const;
  const doubts: unknown[] = [];
  for (let i = 0; i < 60; i++) {
    const pet = await client.createPet({ name: `pet ${i}`, categoryId: i });
    const order = await client.placeOrder(pet.id);
    assert.deepEqual([order.petId, order.status], [pet.id, 'placed'], `seed ${SEED}`);
    const status = statuses[i % 2];
    const closed = await client.closeOrder(order.id, status).catch((error) => error);
    if (closed instanceof PetstoreError) {
      assert.deepEqual([closed.code, closed.outcomeUnknown], ['order_closed', true], `seed ${SEED}`);
      doubts.push(order.id);
    } else assert.deepEqual(closed, { ...order, status }, `seed ${SEED}`);
  }
  const orders = await all(direct.listOrders());
  assert.equal(orders.length, 60, `seed ${SEED}`);
  for (const [i, { status }] of orders.entries()) assert.equal(status, statuses[i % 2]);
  assert.equal((await all(direct.listPets({ status: 'sold' }))).length, 30);
  assert.equal((await all(direct.listPets({ status: 'available' }))).length, 30);
  assert.ok(doubts.length > 0 && doubts.length < 60, `seed ${SEED}: ${doubts.length} in doubt`);
});

test('lists and categories through cuts are complete and exact', async (t) => {
  const { client } = await live(t, harmful(randomFrom(SEED + 2), 0.4), { tries: 40 });
  const ids = [-(2n ** 63n), -5, 0, 1, 9007199254740993n, 2n ** 63n - 1n];
  for (const id of ids) assert.deepEqual(await client.putCategory(id, `${id}`), { id, name: `${id}` });
  assert.deepEqual(
    (await all(client.listCategories({ limit: 2 }))).map(({ id }) => id),
    ids,
  );
  const page = await client.listCategories({ limit: 2, after: 0 }).page();
  assert.deepEqual([page.items.map(({ id }) => id), page.nextAfter], [[1, 9007199254740993n], 9007199254740993n]);
});

test('the deprecated operation names its end, and a missing animal is an error', async (t) => {
  const { direct, client } = await live(t, () => 'pass');
  const warned = t.mock.method(process, 'emitWarning', () => {});
  const rex = await direct.createPet({ name: 'Rex', categoryId: 1 });
  assert.deepEqual(await client.getPet(rex.id), rex);
  const error = await client.getPet(2).catch((error) => error);
  assert.deepEqual([error.code, error.status, error.tries], ['not_found', 404, 1]);
  assert.match(error.requestId, /./);
  assert.deepEqual(
    warned.mock.calls.map((call) => call.arguments[0]),
    ['getPet is deprecated; it ends on Thu, 05 Dec 2030 00:00:00 GMT'],
  );
});

test('far over the limit: all are made in time, with one refusal a window and no ban', async (t) => {
  const time = new Time();
  const service = await startService({ clock: time });
  t.after(() => service.close());
  const { text, key } = await service.makeKey('free');
  const budgetMs = 10 * 60_000;
  const common = { key: text, clock: time, sleep: time.sleep, tries: 20, budgetMs };
  const { client, front } = await harness(t, () => 'pass', common, service.url);
  const results = await makeMany(client, 400);
  assert.equal([...results.values()].filter((result) => result instanceof PetstoreError).length, 0);
  const refused = front.asked.length - 400;
  assert.ok(refused <= 6, `${refused} refusals in 7 windows: 300 in one of them are a ban`);
  assert.equal(service.limiter.strikes(key) <= 1, true);
  const ids = await all(client.listPets());
  assert.equal(ids.length, 400);
});

test('a service that is killed and started again under the calls: nothing is lost, nothing is made twice', async (t) => {
  const data = await temporary(t);
  const first = await serving(t, ['--data', data, '--first-key', 'business']);
  const { client, front } = await harness(
    t,
    () => 'pass',
    { key: first.key, clock: undefined, tries: 12, sleep: () => new Promise((resolve) => setTimeout(resolve, 2)) },
    first.url,
  );
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
