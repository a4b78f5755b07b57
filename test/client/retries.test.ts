/** When the client sends again, how long it waits, and when it stops. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import test from 'node:test';
import { inTurn, json, REX, refusal } from './front.ts';
import { failure, harness } from './harness.ts';

const made = json(REX, {}, 201);
const newPet = { name: 'Rex', categoryId: 1 };

test('waits exactly as long as Retry-After says', async (t) => {
  const { client, time, front } = await harness(
    t,
    inTurn(
      refusal(429, 'rate_limited', { 'Retry-After': '7' }),
      refusal(503, 'unavailable', { 'Retry-After': '2' }),
      // A date is read against the Date of the same reply: clocks that differ do no harm.
      refusal(503, 'unavailable', {
        'Retry-After': 'Fri, 20 Nov 2026 22:00:40 GMT',
        Date: 'Fri, 20 Nov 2026 22:00:10 GMT',
      }),
      made,
    ),
  );
  assert.deepEqual(await client.createPet(newPet), REX);
  assert.deepEqual(time.waits, [7_000, 2_000, 30_000]);
  assert.equal(front.asked.length, 4);
});

test('asks the clock again after a wait that ended early', async (t) => {
  for (const refused of [
    refusal(429, 'rate_limited', { 'Retry-After': '5' }),
    refusal(503, 'unavailable', { 'Retry-After': '5' }),
  ]) {
    let early = true;
    const { client, time } = await harness(t, inTurn(refused, made), {
      sleep: async (ms) => {
        await time.sleep(early ? ms - 1 : ms);
        early = false;
      },
    });
    await client.createPet(newPet);
    assert.deepEqual(time.waits, [4_999, 1]);
  }
});

test('backs off exponentially to a cap, with full jitter', async (t) => {
  const busy = refusal(503, 'unavailable');
  const full = await harness(t, () => busy, { tries: 9 });
  const error = await failure(full.client.createPet(newPet));
  assert.deepEqual([error.code, error.status, error.tries, error.requestId], ['unavailable', 503, 9, 'r-1']);
  assert.deepEqual(full.time.waits, [200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]);

  const none = await harness(t, () => busy, { tries: 3, random: () => 0 });
  await failure(none.client.createPet(newPet));
  assert.deepEqual(none.time.waits, []);
});

test('gives up at once when the wait would exceed the budget of time', async (t) => {
  const { client, time, front } = await harness(t, () => refusal(429, 'rate_limited', { 'Retry-After': '61' }), {
    budgetMs: 60_999,
  });
  const error = await failure(client.createPet(newPet));
  assert.deepEqual([error.code, error.status, error.retryAfter, error.tries], ['rate_limited', 429, 61, 1]);
  assert.equal(error.message, 'because of rate_limited');
  assert.equal(error.outcomeUnknown, false);

  time.advance(2_500);
  const next = await failure(client.createPet(newPet));
  assert.deepEqual(
    [next.code, next.retryAfter, next.tries],
    ['rate_limited', 61, 1],
    'fits the budget now, so it waited',
  );
  assert.deepEqual(time.waits, [58_500]);
  assert.equal(front.asked.length, 2);
});

test('after a 429 no call of the client is sent before its time', async (t) => {
  const { client, time, front } = await harness(t, () => refusal(429, 'rate_limited', { 'Retry-After': '3600' }));
  await failure(client.createPet(newPet));
  const error = await failure(client.listPets().page());
  assert.deepEqual([error.code, error.tries, error.retryAfter], ['rate_limited', 0, 3_600]);
  assert.match(error.message, /^not sent, as an earlier reply said: because of rate_limited$/);
  assert.equal(front.asked.length, 1);
  time.advance(3_599_999);
  assert.equal((await failure(client.listPets().page())).tries, 1, 'a wait of 1 ms is within the budget');
  assert.deepEqual(time.waits, [1]);
});

test('a 429 is obeyed although its body breaks off', async (t) => {
  const cut = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => {
      socket.write('HTTP/1.1 429 Too Many Requests\r\nRetry-After: 9\r\nContent-Length: 100\r\n\r\n{"code":');
      // The head is to arrive before the end does.
      setTimeout(() => socket.destroy(), 5);
    });
  }).listen(0, '127.0.0.1');
  await once(cut, 'listening');
  t.after(() => cut.close());
  const { port } = cut.address() as AddressInfo;
  const { client, time } = await harness(t, () => made, { baseUrl: `http://127.0.0.1:${port}/v1`, tries: 2 });
  const error = await failure(client.createPet(newPet));
  assert.deepEqual([error.code, error.status, error.retryAfter, error.tries], ['bad_reply', 429, 9, 2]);
  assert.equal(error.outcomeUnknown, false);
  assert.deepEqual(time.waits, [9_000]);
});

test('of two refusals the one that ends later counts, whichever comes last', async (t) => {
  const { client, front, time } = await harness(t, () => json([], { 'X-RateLimit-Remaining': '9' }), { tries: 1 });
  await client.listPets().page();
  let release = () => {};
  const after = (seconds: string) => refusal(429, 'rate_limited', { 'Retry-After': seconds });
  front.fault = async () => {
    if (front.asked.length === 2) return after('60');
    await new Promise<void>((resolve) => (release = resolve));
    return after('5');
  };
  const [first, second] = [failure(client.listPets().page()), failure(client.listPets().page())];
  await first;
  while (front.asked.length < 3) await new Promise(setImmediate);
  release();
  assert.equal((await second).retryAfter, 5);
  front.fault = () => json([]);
  await client.listPets().page();
  assert.deepEqual(time.waits, [60_000]);
});

test('throws at once on a ban, unless told to wait for its end', async (t) => {
  const ban = refusal(429, 'key_banned', { 'Retry-After': '30' });
  const strict = await harness(t, () => ban);
  for (const tries of [1, 0]) {
    const error = await failure(strict.client.createPet(newPet));
    assert.deepEqual([error.code, error.tries, error.retryAfter], ['key_banned', tries, 30]);
  }
  assert.deepEqual(strict.time.waits, []);
  assert.equal(strict.front.asked.length, 1);

  const patient = await harness(t, inTurn(ban, made), { waitOutBans: true });
  await patient.client.createPet(newPet);
  assert.deepEqual(patient.time.waits, [30_000]);
});

test('no more calls are under way than the service said remain', async (t) => {
  let remaining = 6;
  let under = 0;
  const most: number[] = [];
  const { client } = await harness(t, async () => {
    under++;
    most.push(under);
    // Let whatever else is on its way arrive.
    await new Promise((resolve) => setTimeout(resolve, 3));
    under--;
    if (remaining === 0) {
      remaining = 40;
      return refusal(429, 'rate_limited', { 'Retry-After': '60', 'X-RateLimit-Remaining': '0' });
    }
    return json(REX, { 'X-RateLimit-Remaining': String(--remaining) }, 201);
  });
  await Promise.all(Array.from({ length: 40 }, () => client.createPet(newPet)));
  assert.equal(most.length, 41, 'one refusal, and no more');
  assert.equal(most[0], 1, 'the first goes alone');
  assert.ok(Math.max(...most.slice(0, 7)) <= 5, `${most}`);
  assert.ok(Math.max(...most) > 5 && Math.max(...most) <= 16, `${most}`);
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

test('what passes is sent again, what does not is thrown at once', async (t) => {
  const passing = ['request_timeout', 'idempotency_in_flight', 'outcome_unknown', 'unavailable'];
  const lasting = ['invalid_body', 'invalid_api_key', 'not_found', 'pet_unavailable', 'idempotency_key_reused'];
  const ended = ['internal_error', 'storage_full', 'never_heard_of'];
  for (const code of [...passing, ...lasting, ...ended]) {
    const { client, front } = await harness(t, inTurn(refusal(code === 'never_heard_of' ? 503 : 500, code), made));
    const isPassing = passing.includes(code);
    if (isPassing) await client.createPet(newPet);
    else assert.equal((await failure(client.createPet(newPet))).code, code);
    assert.equal(front.asked.length, isPassing ? 2 : 1, code);
  }
});

test('says whether the thing may have been done', async (t) => {
  const cases: [Parameters<typeof inTurn>, string, boolean][] = [
    [[refusal(400, 'invalid_body')], 'invalid_body', false],
    [[refusal(507, 'storage_full')], 'storage_full', false],
    [[refusal(503, 'unavailable')], 'unavailable', false],
    [[refusal(503, 'outcome_unknown')], 'outcome_unknown', true],
    [[refusal(409, 'idempotency_in_flight')], 'idempotency_in_flight', true],
    [[refusal(500, 'internal_error')], 'internal_error', true],
    [['lost'], 'network', true],
    [['lost', refusal(429, 'rate_limited', { 'Retry-After': '999' })], 'rate_limited', true],
    [[json('{"id":1', {}, 201)], 'bad_reply', true],
    [[json({ id: 1 }, {}, 201)], 'bad_reply', true],
  ];
  for (const [faults, code, unknown] of cases) {
    const { client } = await harness(t, inTurn(...faults), { tries: 2 });
    const error = await failure(client.createPet(newPet, { idempotencyKey: 'mine' }));
    assert.deepEqual([error.code, error.outcomeUnknown, error.idempotencyKey], [code, unknown, 'mine']);
  }
  const reading = await harness(t, inTurn('lost'), { tries: 2 });
  assert.equal((await failure(reading.client.listPets().page())).outcomeUnknown, false, 'reading does nothing');
});

test('where nobody listens nothing was done, and it is tried again', async (t) => {
  const { client, time } = await harness(t, () => made, { baseUrl: 'http://127.0.0.1:1/v1', tries: 3 });
  const error = await failure(client.createPet(newPet));
  assert.deepEqual([error.code, error.status, error.tries, error.outcomeUnknown], ['network', 0, 3, false]);
  assert.equal((error.cause as { code?: string }).code, 'ECONNREFUSED');
  assert.deepEqual(time.waits, [200, 400]);
});
