/** Many calls at once: which is sent when, after refusals, after failures, and as the limits of the key admit. */
import assert from 'node:assert/strict';
import test from 'node:test';
import {
  all,
  created,
  failure,
  harness,
  html,
  inTurn,
  json,
  newPet,
  REX,
  refusal,
  retryAfter,
  until,
} from './proxy.ts';

const limits = (minute: number, day = 900) => ({
  'RateLimit-Policy': '"minute";q=60;w=60, "day";q=1000;w=86400',
  RateLimit: `"minute";r=${minute};t=60, "day";r=${day};t=9000`,
});
const names = (count: number) => Array.from({ length: count }, (_, n) => `${n}`);
const nameIn = ({ body }: { body: string }): string => JSON.parse(body).name;

test('no call is sent before the time that a refusal named; one that cannot wait so long fails at once', async (t) => {
  for (const status of [429, 503]) {
    const { client, time, waits, proxy } = await harness(t, () => refusal(status, 'busy', retryAfter(120)));
    const first = await failure(client.createPet(newPet));
    assert.deepEqual([first.code, first.status, first.retryAfter, first.tries], ['busy', status, 120, 1]);
    time.now += 20_500;
    const held = await failure(all(client.listPets()));
    assert.deepEqual([held.code, held.status, held.retryAfter, held.tries], ['busy', status, 101, 0]);
    const why = 'its wait of 101 s does not fit into what is left of budgetMs, since an earlier reply said';
    assert.equal(held.message, `not sent: ${why}: because of busy`);
    assert.deepEqual([waits, proxy.received.length], [[], 1]);
    proxy.fault = () => created;
    time.now += 11_000;
    await client.createPet(newPet);
    assert.deepEqual([waits, proxy.received.length], [[89_500], 2], 'what fits into the budget is waited for');
  }
});

test('calls that wait are refused too, as soon as a reply names a time beyond their deadline', async (t) => {
  const { client, proxy } = await harness(t, async () => {
    await until(() => proxy.received.length === 4);
    return refusal(429, 'key_banned', retryAfter(120));
  });
  const errors = await Promise.all(names(9).map((name) => failure(client.createPet({ name, categoryId: 1 }))));
  assert.deepEqual(
    errors.map(({ code, tries }) => `${code} ${tries}`),
    names(9).map((_, n) => `key_banned ${n < 4 ? 1 : 0}`),
  );
});

test('clients that were refused together return at different times within a second', async (t) => {
  const returned: number[] = [];
  for (const random of [0, 0.25, 0.5, 0.75]) {
    const { client, time } = await harness(t, inTurn(refusal(429, 'busy', retryAfter(5)), created), { random });
    const startedAt = time.now;
    await client.createPet(newPet);
    returned.push(time.now - startedAt);
  }
  assert.deepEqual(returned, [5_000, 5_250, 5_500, 5_750]);
});

test('a 429 without Retry-After holds all calls for the time of a backoff', async (t) => {
  const { client, proxy, waits } = await harness(t, () => refusal(429, 'rate_limited'));
  assert.equal((await failure(client.createPet(newPet))).tries, 6);
  // The time that doubles, and as much again, up to a second, at random: here at its greatest.
  assert.deepEqual(waits.splice(0), [400, 800, 1_600, 2_600, 4_200]);
  proxy.fault = inTurn(refusal(429, 'rate_limited'), created);
  await client.createPet(newPet);
});

test('an absurd Retry-After ends the call, and holds the client for a day, not for good', async (t) => {
  for (const absurd of ['99999999999', '9'.repeat(400), 'Fri, 31 Dec 9999 23:59:59 GMT']) {
    const { client, proxy, time } = await harness(t, () => refusal(429, 'rate_limited', retryAfter(absurd)));
    const error = await failure(client.createPet(newPet));
    assert.deepEqual([error.code, error.tries], ['rate_limited', 1]);
    assert.ok(error.retryAfter! > 1e9 && Number.isSafeInteger(error.retryAfter), `${error.retryAfter}`);
    proxy.fault = () => json([REX]);
    time.now += 80_000_000;
    assert.equal((await failure(client.createPet(newPet))).tries, 0, 'a ban of a day is believed');
    time.now += 6_400_000;
    assert.equal((await all(client.listPets())).length, 1);
  }
});

test('no request is sent beyond what both windows of the limits admit, and none before their reset', async (t) => {
  const left = { minute: 6, day: 45 };
  let refused = 0;
  const { client, waits } = await harness(t, async () => {
    if (waits.length > 0 && left.minute === 0) left.minute = 60;
    if (left.minute === 0 || left.day === 0) refused++;
    left.minute--;
    const headers = limits(left.minute, --left.day);
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate); // what is too much arrives meanwhile
    return json(REX, headers, 201);
  });
  const results = await Promise.allSettled(names(47).map((name) => client.createPet({ name, categoryId: 1 })));
  const errors = results.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
  assert.deepEqual([refused, waits, left], [0, [61_000], { minute: 21, day: 0 }]);
  const facts = errors.map(({ code, status, tries, retryAfter }) => `${code} ${status} ${tries} ${retryAfter}`);
  assert.deepEqual(
    facts,
    Array.from({ length: 2 }, () => 'rate_limited 429 0 9001'),
  );
  const { at, minute, day } = client.limits!;
  assert.deepEqual(minute, { limit: 60, remaining: 21, resetsInSeconds: 60 });
  assert.deepEqual(day, { limit: 1000, remaining: 0, resetsInSeconds: 9_000 });
  assert.ok(Math.abs(at.getTime() - Date.now()) < 60_000);
});

test('calls are sent in the order in which they were made, also those that a reset held', async (t) => {
  let left = 1;
  const received: string[] = [];
  const { client, waits } = await harness(t, (request) => {
    if (waits.length > 0 && left <= 0) left = 60;
    received.push(nameIn(request));
    return json(REX, limits(--left), 201);
  });
  await client.createPet({ name: '0', categoryId: 1 });
  await Promise.all(
    names(31)
      .slice(1)
      .map((name) => client.createPet({ name, categoryId: 1 })),
  );
  assert.deepEqual([received.slice(0, 2), waits], [['0', '1'], [61_000]]);
  const distances = received.map((name, at) => Math.abs(Number(name) - at));
  assert.ok(Math.max(...distances) < 16, 'none is later by more than what was in flight'); // sockets are no queue
});

test('4 calls are in flight at most, also where all fail; one slow call does not hold up the others', async (t) => {
  for (const fault of [created, html(502), refusal(503, 'busy', retryAfter(5)), refusal(429, 'busy', retryAfter(5))]) {
    const inFlight = new Set<object>();
    const seen: number[] = [];
    const order: string[] = [];
    const answer = async (request: { body: string }) => {
      inFlight.add(request);
      order.push(nameIn(request));
      const nth = order.length;
      if (nth === 1) await until(() => seen.length === 59);
      else {
        for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate); // what is too much arrives meanwhile
        seen.push(inFlight.size);
      }
      inFlight.delete(request);
      return nth > 20 && nth <= 30 ? fault : created;
    };
    const { client } = await harness(t, answer, { retries: 20 });
    const count = fault === created ? 60 : 50; // ten are sent twice
    await Promise.all(names(count).map((name) => client.createPet({ name, categoryId: 1 })));
    assert.deepEqual([Math.max(...seen), order.length], [4, 60]);
  }
});
