/** When the client sends again, how long it waits, and when it stops. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { CATALOGUE, type ErrorCode } from '../../src/http/errors.ts';
import { type Fault, inTurn, json, REX, refusal } from './front.ts';
import { all, failure, harness, newPet } from './harness.ts';

const made = json(REX, {}, 201);

test('waits exactly as long as Retry-After says, also where the body breaks off', async (t) => {
  const limited = (seconds: string) => refusal(429, 'rate_limited', { 'Retry-After': seconds });
  const busy = refusal(503, 'unavailable', { 'Retry-After': '2' });
  const { client, time } = await harness(t, inTurn(limited('7'), busy, { ...limited('9'), isHalf: true }, made));
  assert.deepEqual(await client.createPet(newPet), REX);
  assert.deepEqual(time.waits, [7_000, 2_000, 9_000]);
});

test('backs off exponentially for at most six tries, with jitter', async (t) => {
  const { client, time } = await harness(t, () => refusal(503, 'unavailable'));
  const error = await failure(client.createPet(newPet));
  assert.deepEqual([error.code, error.status, error.tries, error.requestId], ['unavailable', 503, 6, 'r-1']);
  assert.deepEqual(time.waits.splice(0), [200, 400, 800, 1_600, 3_200]);
  t.mock.method(Math, 'random', () => 0);
  await failure(client.createPet(newPet));
  assert.deepEqual(time.waits, [150, 300, 600, 1_200, 2_400]);
});

test('no call is sent before the time that a refusal told; one that cannot wait so long is thrown at once', async (t) => {
  const { client, time, front } = await harness(t, () => refusal(429, 'key_banned', { 'Retry-After': '120' }));
  const told = await failure(client.createPet(newPet));
  assert.deepEqual([told.code, told.status, told.retryAfter, told.tries], ['key_banned', 429, 120, 1]);
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
    await new Promise((resolve) => setTimeout(resolve, 3)); // let whatever else is on its way arrive
    under--;
    assert.ok(windows.minute > 0 || time.waits.length > 0, 'sent, though none was left');
    if (windows.minute === 0) windows.minute = 60;
    const RateLimit = `"minute";r=${--windows.minute};t=60, "day";r=${--windows.day};t=9000`;
    return json(REX, { RateLimit, 'RateLimit-Policy': '"minute";q=60;w=60, "day";q=1000;w=86400' }, 201);
  });
  const settled = await Promise.allSettled(Array.from({ length: 46 }, () => client.createPet(newPet)));
  assert.equal(most[0], 1, 'the first goes alone');
  assert.ok(Math.max(...most.slice(0, 6)) <= 5 && Math.max(...most) > 5 && Math.max(...most) <= 16, `${most}`);
  assert.equal(time.waits[0], 60_000);
  assert.equal(most.length, 45, 'the day has no more');
  const [refused] = settled.filter((one) => one.status === 'rejected').map((one) => one.reason);
  assert.deepEqual([refused.code, refused.tries, refused.retryAfter], ['rate_limited', 0, 9_000]);
});

test('POST goes under one key for all tries of a call, another for another call, or the one given', async (t) => {
  const { client, front } = await harness(t, inTurn('lost', refusal(503, 'outcome_unknown'), made));
  for (const idempotencyKey of [undefined, undefined, 'mine']) await client.createPet(newPet, { idempotencyKey });
  const [first, ...others] = front.asked.map(({ headers }) => headers['idempotency-key']);
  assert.match(String(first), /^[0-9a-f-]{36}$/);
  assert.notEqual(others[2], first);
  assert.deepEqual(others, [first, first, others[2], 'mine']);
});

test('what passes is sent again, what does not is thrown at once, and says whether it may have been done', async (t) => {
  const told = (code: ErrorCode, tries: number, outcomeUnknown: boolean) =>
    [refusal(CATALOGUE[code], code), code, tries, outcomeUnknown] as const;
  const cases: (readonly [Fault, code: string, tries: number, outcomeUnknown: boolean])[] = [
    ...(
      ['invalid_body', 'invalid_api_key', 'not_found', 'pet_unavailable', 'gone', 'idempotency_key_reused'] as const
    ).map((code) => told(code, 1, false)),
    told('storage_full', 1, false),
    told('internal_error', 1, true),
    told('request_timeout', 6, false),
    told('unavailable', 6, false),
    told('outcome_unknown', 6, true),
    told('idempotency_in_flight', 6, true),
    ['lost', 'network', 6, true],
    [json('{"id":1', {}, 201), 'bad_reply', 1, true],
    [json({ name: 'Rex' }, {}, 201), 'bad_reply', 1, true],
  ];
  const { client, front } = await harness(t, () => 'lost');
  for (const [fault, ...expected] of cases) {
    front.fault = () => fault;
    const { code, tries, outcomeUnknown, idempotencyKey } = await failure(
      client.createPet(newPet, { idempotencyKey: 'mine' }),
    );
    assert.deepEqual([code, tries, outcomeUnknown], expected);
    assert.deepEqual([front.asked.splice(0).length, idempotencyKey], [tries, 'mine']);
    const reading = await failure(all(client.listPets()));
    assert.equal(reading.outcomeUnknown, false, 'reading does nothing');
    front.asked.length = 0;
  }
  front.fault = inTurn('lost', refusal(429, 'rate_limited', { 'Retry-After': '999' }));
  const { code, outcomeUnknown } = await failure(client.createPet(newPet));
  assert.deepEqual([code, outcomeUnknown], ['rate_limited', true], 'a refusal says nothing of the try before');
});

test('closing an order is sent again only while it is sure that nothing was done', async (t) => {
  const order = { id: 3, petId: 1, status: 'delivered', placedAt: '2026-01-01T00:00:00.000Z' };
  const sure = inTurn(refusal(503, 'unavailable'), refusal(429, 'rate_limited'), json(order));
  const { client, front } = await harness(t, sure);
  assert.deepEqual(await client.closeOrder(3, 'delivered'), order);
  for (const fault of ['lost' as const, refusal(503, 'outcome_unknown'), { status: 502 }]) {
    front.fault = inTurn(fault, json(order));
    const { tries, outcomeUnknown } = await failure(client.closeOrder(3, 'delivered'));
    assert.deepEqual([tries, outcomeUnknown], [1, true]);
    assert.deepEqual(await client.getOrder(3), order, 'the second request');
  }
});

test('where nobody listens nothing was done, and it is tried again', async (t) => {
  const { client, time } = await harness(t, () => made, { baseUrl: 'http://127.0.0.1:1/v1' });
  const error = await failure(client.createPet(newPet));
  assert.deepEqual([error.code, error.status, error.tries, error.outcomeUnknown], ['network', 0, 6, false]);
  assert.equal((error.cause as { code?: string }).code, 'ECONNREFUSED');
  assert.equal(time.waits.length, 5);
});
