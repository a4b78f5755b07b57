/** When the client sends again, how long it waits, and when it stops. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { CATALOGUE, type ErrorCode } from '../../src/http/errors.ts';
import { type Fault, inTurn, json, REX, refusal } from './front.ts';
import { all, failure, harness } from './harness.ts';

const made = json(REX, {}, 201);
const newPet = { name: 'Rex', categoryId: 1 };

test('waits exactly as long as Retry-After says, also where the body breaks off', async (t) => {
  const { client, time, front } = await harness(
    t,
    inTurn(
      refusal(429, 'rate_limited', { 'Retry-After': '7' }),
      refusal(503, 'unavailable', { 'Retry-After': '2' }),
      { ...refusal(429, 'rate_limited', { 'Retry-After': '9' }), isHalf: true },
      made,
    ),
  );
  assert.deepEqual(await client.createPet(newPet), REX);
  assert.deepEqual(time.waits, [7_000, 2_000, 9_000]);
  assert.equal(front.asked.length, 4);
});

test('backs off exponentially to a cap, with jitter', async (t) => {
  const busy = refusal(503, 'unavailable');
  const full = await harness(t, () => busy, { tries: 9 });
  const error = await failure(full.client.createPet(newPet));
  assert.deepEqual([error.code, error.status, error.tries, error.requestId], ['unavailable', 503, 9, 'r-1']);
  assert.deepEqual(full.time.waits, [200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]);

  const least = await harness(t, () => busy, { tries: 3 });
  t.mock.method(Math, 'random', () => 0);
  await failure(least.client.createPet(newPet));
  assert.deepEqual(least.time.waits, [150, 300]);
});

test('no call is sent before the time that a refusal told; one that cannot wait so long is thrown at once', async (t) => {
  const { client, time, front } = await harness(t, () => refusal(429, 'key_banned', { 'Retry-After': '120' }));
  const told = await failure(client.createPet(newPet));
  assert.deepEqual([told.code, told.status, told.retryAfter, told.tries], ['key_banned', 429, 120, 1]);
  assert.deepEqual([told.message, told.outcomeUnknown], ['because of key_banned', false]);
  time.advance(20_500);
  const held = await failure(all(client.listPets()));
  assert.deepEqual([held.code, held.status, held.retryAfter, held.tries], ['key_banned', 429, 100, 0]);
  assert.match(held.message, /^not sent, as was said before: because of key_banned$/);
  assert.deepEqual([time.waits, front.asked.length], [[], 1]);
  time.advance(9_501);
  front.fault = () => made;
  await client.createPet(newPet);
  assert.deepEqual([time.waits, front.asked.length], [[89_999], 2], 'what is within the budget is waited for');
});

test('no more calls are under way than the service said remain; with none left, none is sent before the reset', async (t) => {
  const windows = { minute: 6, day: 45 };
  let under = 0;
  const most: number[] = [];
  const { client, time } = await harness(t, async () => {
    most.push(++under);
    // Let whatever else is on its way arrive.
    await new Promise((resolve) => setTimeout(resolve, 3));
    under--;
    assert.ok(windows.minute > 0 || time.waits.length > 0, 'sent, though none was left');
    if (windows.minute === 0) windows.minute = 60;
    windows.minute--;
    windows.day--;
    return json(
      REX,
      {
        RateLimit: `"minute";r=${windows.minute};t=60, "day";r=${windows.day};t=9000`,
        'RateLimit-Policy': '"minute";q=60;w=60, "day";q=1000;w=86400',
      },
      201,
    );
  });
  const all = await Promise.allSettled(Array.from({ length: 46 }, () => client.createPet(newPet)));
  assert.equal(most[0], 1, 'the first goes alone');
  assert.ok(Math.max(...most.slice(0, 6)) <= 5 && Math.max(...most) > 5 && Math.max(...most) <= 16, `${most}`);
  assert.equal(time.waits[0], 60_000);
  assert.equal(most.length, 45, 'the day has no more');
  const [refused] = all.filter((one) => one.status === 'rejected').map((one) => one.reason);
  assert.deepEqual([refused.code, refused.tries, refused.retryAfter], ['rate_limited', 0, 9_000]);
});

test('POST goes under one key for all tries of a call, another for another call, or the one given', async (t) => {
  const { client, front } = await harness(t, inTurn('lost', refusal(503, 'outcome_unknown'), made));
  const keys = () => front.asked.splice(0).map(({ headers }) => headers['idempotency-key']);
  await client.createPet(newPet);
  const [first, ...others] = keys();
  assert.match(first as string, /^[0-9a-f-]{36}$/);
  assert.deepEqual(others, [first, first]);
  await client.createPet(newPet);
  assert.notDeepEqual(keys(), [first]);
  await client.createPet(newPet, { idempotencyKey: 'mine' });
  assert.deepEqual(keys(), ['mine']);
});

test('what passes is sent again, what does not is thrown at once, and says whether it may have been done', async (t) => {
  const told = (code: ErrorCode) => refusal(CATALOGUE[code], code);
  const cases: [first: Fault, code: string, tries: number, outcomeUnknown: boolean][] = [
    ...(
      ['invalid_body', 'invalid_api_key', 'not_found', 'pet_unavailable', 'gone', 'idempotency_key_reused'] as const
    ).map((code): [Fault, string, number, boolean] => [told(code), code, 1, false]),
    [told('storage_full'), 'storage_full', 1, false],
    [told('internal_error'), 'internal_error', 1, true],
    [told('request_timeout'), 'request_timeout', 2, false],
    [told('unavailable'), 'unavailable', 2, false],
    [told('outcome_unknown'), 'outcome_unknown', 2, true],
    [told('idempotency_in_flight'), 'idempotency_in_flight', 2, true],
    ['lost', 'network', 2, true],
    [json('{"id":1', {}, 201), 'bad_reply', 1, true],
    [json({ name: 'Rex' }, {}, 201), 'bad_reply', 1, true],
  ];
  for (const [fault, code, tries, outcomeUnknown] of cases) {
    const { client, front } = await harness(t, () => fault, { tries: 2 });
    const error = await failure(client.createPet(newPet, { idempotencyKey: 'mine' }));
    const { idempotencyKey, ...facts } = error;
    assert.deepEqual(
      [facts.code, facts.tries, facts.outcomeUnknown, idempotencyKey],
      [code, tries, outcomeUnknown, 'mine'],
    );
    assert.equal(front.asked.length, tries, code);
    const reading = await failure(all(client.listPets()));
    assert.equal(reading.outcomeUnknown, false, 'reading does nothing');
  }
  const later = await harness(t, inTurn('lost', refusal(429, 'rate_limited', { 'Retry-After': '999' })));
  const { code, outcomeUnknown } = await failure(later.client.createPet(newPet));
  assert.deepEqual([code, outcomeUnknown], ['rate_limited', true], 'a refusal says nothing of the try before');
});

test('closing an order is sent again only while it is sure that nothing was done', async (t) => {
  const order = { id: 3, petId: 1, status: 'delivered', placedAt: '2026-01-01T00:00:00.000Z' };
  const sure = await harness(t, inTurn(refusal(503, 'unavailable'), refusal(429, 'rate_limited'), json(order)));
  assert.deepEqual(await sure.client.closeOrder(3, 'delivered'), order);
  for (const fault of ['lost' as const, refusal(503, 'outcome_unknown'), { status: 502 }]) {
    const { client, front } = await harness(t, inTurn(fault, json(order)));
    const error = await failure(client.closeOrder(3, 'delivered'));
    assert.deepEqual([front.asked.length, error.tries, error.outcomeUnknown], [1, 1, true]);
    assert.deepEqual(await client.getOrder(3), order);
  }
});

test('where nobody listens nothing was done, and it is tried again', async (t) => {
  const { client, time } = await harness(t, () => made, { baseUrl: 'http://127.0.0.1:1/v1', tries: 3 });
  const error = await failure(client.createPet(newPet));
  assert.deepEqual([error.code, error.status, error.tries, error.outcomeUnknown], ['network', 0, 3, false]);
  assert.equal((error.cause as { code?: string }).code, 'ECONNREFUSED');
  assert.deepEqual(time.waits, [200, 400]);
});
