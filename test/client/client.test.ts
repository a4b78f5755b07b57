/** The client: what it makes of replies, when it sends again and how long it waits, and what ends a call. */
import assert from 'node:assert/strict';
import { getEventListeners, once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import test from 'node:test';
import { inspect } from 'node:util';
import { type Fetch, PetstoreClient } from '../../src/client/client.ts';
import { MAX_REPLY_BYTES } from '../../src/client/exchange.ts';
import { CATALOGUE, type ErrorCode } from '../../src/http/errors.ts';
import { all, type Fault, failure, harness, html, inTurn, json, KEY, newPet, REX, refusal, until } from './front.ts';

const made = json(REX, {}, 201);
const wait = (seconds: number) => ({ 'Retry-After': `${seconds}` });

test('ids are exact both ways: a number up to 2^53 − 1, its digits beyond', async (t) => {
  const { client, front } = await harness(t, ({ body }) =>
    json(`{"id":9007199254740993,"name":"Rex","categoryId":${/-?\d+/.exec(body) ?? 1},"status":"sold"}`),
  );
  for (const written of ['9007199254740991', '9007199254740993', '-9223372036854775808', '9223372036854775807', '-5']) {
    const categoryId = Number.isSafeInteger(Number(written)) ? Number(written) : written;
    for (const given of [categoryId, written, BigInt(written)]) {
      const pet = await client.createPet({ name: 'Rex', categoryId: given });
      assert.deepEqual(pet, { id: '9007199254740993', name: 'Rex', categoryId, status: 'sold' });
      assert.equal(front.asked.at(-1)?.body, `{"categoryId":${written},"name":"Rex"}`);
      await client.getPet(given);
      assert.equal(front.asked.at(-1)?.path, `/v1/pets/${written}`);
    }
  }
  front.asked.length = 0;
  const calls = [2 ** 53, 1.5, Number.NaN, 2n ** 63n, '1.0', 'x', ''].map((id) => client.getPet(id));
  calls.push(
    client.createPet({ name: 'Rex', categoryId: 1.5 }),
    client.createPet(newPet, { idempotencyKey: 'a\r\nb' }),
  );
  for (const error of await Promise.all([...calls, all(client.listPets({ after: 1.5 }))].map(failure))) {
    assert.deepEqual([error.code, error.outcomeUnknown], ['invalid_argument', false]);
  }
  assert.equal(front.asked.length, 0, 'nothing of it was sent');
});

test('what is no reply of the service; each is read to its end, so its connection serves again', async (t) => {
  const { client, front } = await harness(t, () => html(500));
  const check = async (answer: ReturnType<typeof json>) => {
    front.fault = () => answer;
    const tries = [500, 502, 503, 504, 520].includes(answer.status) ? 6 : 1;
    const error = await failure(all(client.listPets()));
    const found = [error.code, error.status, error.tries, front.asked.splice(0).length];
    assert.deepEqual(found, ['bad_reply', answer.status, tries, tries], answer.body?.slice(0, 80));
  };
  for (const status of [200, 404, 500, 502, 503, 504, 520]) await check(html(status));
  await check(json([], {}, 418));
  await check({ status: 302, headers: { location: 'http://127.0.0.1:1/' } });
  for (const body of ['{}', JSON.stringify(REX), '[{"name":"Rex"}]']) await check(json(body));
  for (const id of ['null', '1.5', '1e99', '"a1"', '""', '[1]', '9223372036854775808'])
    await check(json(`[{"id":${id}}]`));
  assert.equal(front.connections, 1);
  await check(json([{ ...REX, name: 'x'.repeat(MAX_REPLY_BYTES) }]));
});

test('pages follow the Link of each reply, also behind a proxy that adds a prefix', async (t) => {
  for (const prefix of ['', '/shop']) {
    const fault = ({ path }: { path: string }) => {
      const after = Number(new URL(path, 'http://x').searchParams.get('after') ?? 0);
      const Link = `<https://x.test/docs>; rel="help", </v1/pets?status=sold&after=${after + 2}>; Rel="last NEXT"`;
      const pets = [1, 2].map((n) => ({ ...REX, id: after + n }));
      return json(pets, after < 6 ? { Link } : {});
    };
    const { client, front } = await harness(t, fault, { path: `${prefix}/v1` });
    const pets = await all(client.listPets({ status: 'sold' }));
    assert.equal(`${pets.map(({ id }) => id)}`, '1,2,3,4,5,6,7,8');
    for await (const _ of client.listPets({ limit: 2, after: 3n })) break; // asks for no more
    const queries = ['limit=100&status=sold', ...[2, 4, 6].map((after) => `status=sold&after=${after}`)];
    const expected = [...queries, 'limit=2&after=3'].map((query) => `${prefix}/v1/pets?${query}`);
    assert.equal(front.asked.map(({ path }) => path).join('\n'), expected.join('\n'));
  }
});

test('a Link never takes the key elsewhere, and never leads in a circle of one', async (t) => {
  const thief = await harness(t, () => json([]));
  const { client, front } = await harness(t, () => 'lost');
  const linkTo = (target: string) => json([REX], { Link: `<${target}>; rel=next` });
  for (const target of [`${thief.front.url}/v1/pets?after=1`, '//x.test/v1/pets?after=1', '/v1/../x?after=1']) {
    front.fault = inTurn(linkTo(target), json([]));
    await all(client.listPets());
    assert.equal(front.asked.splice(0)[1].path, '/v1/pets?after=1', target);
  }
  assert.equal(thief.front.asked.length, 0);
  for (const target of ['/v1', '?limit=100', 'http://[', '/v1/%2e%2e/x']) {
    front.fault = () => linkTo(target);
    const { code } = await failure(all(client.listPets()));
    assert.deepEqual([code, front.asked.splice(0).length], ['bad_reply', 1], target);
  }
});

test('options that cannot be meant are refused, a mistyped key without a request', async (t) => {
  const good = { baseUrl: 'http://x', key: KEY };
  for (const baseUrl of ['ftp://x/v1', 'http://u@x/v1', 'http://x/v1?a', 'http://x/v1#a', 'v1']) {
    assert.throws(() => new PetstoreClient({ ...good, baseUrl }), TypeError, baseUrl);
  }
  const mistyped = KEY.slice(0, -1) + (KEY.endsWith('x') ? 'y' : 'x');
  for (const key of ['', 'secret', KEY.slice(1), `${KEY} `, mistyped, mistyped.toLowerCase()]) {
    const isTold = ({ name, message }: Error) =>
      name === 'TypeError' && message.startsWith('key ') && !message.includes(key || 'none');
    assert.throws(() => new PetstoreClient({ ...good, key }), isTold, key);
  }
  for (const budgetMs of [0, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 31]) {
    assert.throws(() => new PetstoreClient({ ...good, budgetMs }), RangeError);
  }
  for (const path of ['', '/', '/v1', '/v1/', '/shop', '/shop/v1']) {
    const { client, front } = await harness(t, () => json([]), { path });
    await all(client.listPets());
    assert.equal(front.asked[0].path, `${path.startsWith('/shop') ? '/shop' : ''}/v1/pets?limit=100`, path);
  }
});

test('waits as Retry-After says and up to a second more, also where the body breaks off; else backs off with jitter, for six tries', async (t) => {
  const limited = (seconds: number) => refusal(429, 'rate_limited', wait(seconds));
  const answers = inTurn(limited(7), refusal(503, 'unavailable', wait(2)), { ...limited(9), isHalf: true }, made);
  const { client, front, waits } = await harness(t, answers);
  assert.deepEqual(await client.createPet(newPet), REX);
  assert.deepEqual(waits.splice(0), [8_000, 3_000, 10_000]);
  front.fault = () => refusal(503, 'unavailable');
  const error = await failure(client.createPet(newPet));
  assert.deepEqual(waits.splice(0), [200, 400, 800, 1_600, 3_200]);
  const { name, code, status, tries, requestId, message } = error;
  assert.deepEqual([name, code, status, tries, requestId], ['PetstoreError', 'unavailable', 503, 6, 'r-1']);
  assert.equal(message, 'because of unavailable');
  for (const shown of [error, client]) assert.ok(!inspect(shown, { depth: 9, showHidden: true }).includes(KEY));
  t.mock.method(Math, 'random', () => 0);
  await failure(client.createPet(newPet));
  assert.deepEqual(waits, [150, 300, 600, 1_200, 2_400]);
});

test('no call is sent before the time that a refusal told; one that cannot wait so long is thrown at once', async (t) => {
  const { client, time, waits, front } = await harness(t, () => refusal(429, 'key_banned', wait(120)));
  const told = await failure(client.createPet(newPet));
  assert.deepEqual([told.code, told.status, told.retryAfter, told.tries], ['key_banned', 429, 120, 1]);
  time.advance(20_500);
  const held = await failure(all(client.listPets()));
  assert.deepEqual([held.code, held.status, held.retryAfter, held.tries], ['key_banned', 429, 100, 0]);
  const why = 'its wait of 100 s does not fit into what is left of budgetMs, since an earlier reply said';
  assert.equal(held.message, `not sent: ${why}: because of key_banned`);
  assert.deepEqual([waits, front.asked.length], [[], 1]);
  time.advance(9_499);
  assert.equal((await failure(client.createPet(newPet))).tries, 0, 'a millisecond beyond the budget');
  time.advance(1);
  front.fault = () => made;
  await client.createPet(newPet);
  assert.deepEqual([waits, front.asked.length], [[90_000], 2], 'what is within the budget is waited for');
});

test('no more calls are under way than both windows of the limits let; with none left, none is sent before the reset', async (t) => {
  const left = { minute: 6, day: 45 };
  let [under, may, most, isSilent] = [0, 4, 0, true]; // a few go before anything is known
  const tooMany: string[] = [];
  const { client, waits } = await harness(t, async () => {
    if (left.minute === 0 && waits.length > 0) [left.minute, may] = [60, 1];
    if (++under > may) tooMany.push(`${under} where ${may} may be`);
    const isNext = () => under >= may && left.day === (client.limits?.day.remaining ?? 45);
    do {
      await until(isNext); // as many are here as may be, and the client has heard of the reply before
      for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate); // what is too much arrives too
    } while (!isNext());
    most = Math.max(most, under--);
    if (left.day === 30 && isSilent) return (isSilent = false) || html(404); // what says nothing changes nothing
    may = Math.min(16, --left.minute, --left.day);
    const RateLimit = `"minute";r=${left.minute};t=60, "day";r=${left.day};t=9000`;
    return json(REX, { RateLimit, 'RateLimit-Policy': '"minute";q=60;w=60, "day";q=1000;w=86400' }, 201);
  });
  const calls = Array.from({ length: 47 }, () => client.createPet(newPet));
  const settled = await Promise.allSettled(calls);
  assert.deepEqual([tooMany, most, waits[0]], [[], 16, 61_000]);
  const refused = settled.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
  const told = refused.map(({ code, tries, retryAfter }) => `${code} ${tries} ${retryAfter}`).sort();
  assert.deepEqual(told, ['bad_reply 1 undefined', 'rate_limited 0 9000']);
  const { at, minute, day } = client.limits!;
  assert.deepEqual(minute, { limit: 60, remaining: left.minute, resetsInSeconds: 60 });
  assert.deepEqual(day, { limit: 1000, remaining: 0, resetsInSeconds: 9_000 });
  assert.ok(Math.abs(at.getTime() - Date.now()) < 60_000);
});

test('POST goes under one key for all tries of a call, another for another call, or the one given', async (t) => {
  const { client, front } = await harness(t, inTurn('lost', refusal(503, 'outcome_unknown'), made));
  for (const idempotencyKey of [undefined, undefined, 'mine']) await client.createPet(newPet, { idempotencyKey });
  const [first, ...others] = front.asked.map(({ headers }) => headers['idempotency-key']);
  assert.match(String(first), /^[0-9a-f]{32}$/);
  assert.notEqual(others[2], first);
  assert.deepEqual(others, [first, first, others[2], 'mine']);
});

test('what passes is sent again, what does not is thrown at once, and says whether it may have been done', async (t) => {
  type Case = [fault: Fault, code: string, tries: number, outcomeUnknown: boolean];
  const told = (code: ErrorCode, tries: number, outcomeUnknown = false): Case => {
    return [refusal(CATALOGUE[code], code), code, tries, outcomeUnknown];
  };
  const final = ['invalid_body', 'invalid_api_key', 'not_found', 'pet_unavailable', 'gone', 'storage_full'] as const;
  const cases: Case[] = [
    ...[...final, 'idempotency_key_reused' as const].map((code) => told(code, 1)),
    ...[told('internal_error', 6, true), told('request_timeout', 6), told('unavailable', 6)],
    ...[told('outcome_unknown', 6, true), told('idempotency_in_flight', 6, true)],
    ['lost', 'network', 6, true],
    [json('{"id":1', {}, 201), 'bad_reply', 1, true],
    [json({ name: 'Rex' }, {}, 201), 'bad_reply', 1, true],
  ];
  const { client, front } = await harness(t, () => 'lost');
  for (const [fault, ...expected] of cases) {
    front.fault = () => fault;
    const error = await failure(client.createPet(newPet, { idempotencyKey: 'mine' }));
    assert.deepEqual([error.code, error.tries, error.outcomeUnknown], expected);
    assert.deepEqual([front.asked.splice(0).length, error.idempotencyKey], [error.tries, 'mine']);
    assert.equal((await failure(all(client.listPets()))).outcomeUnknown, false, 'reading does nothing');
    front.asked.length = 0;
  }
  front.fault = inTurn('lost', refusal(429, 'rate_limited', wait(999)));
  const { code, outcomeUnknown } = await failure(client.createPet(newPet));
  assert.deepEqual([code, outcomeUnknown], ['rate_limited', true], 'a refusal says nothing of the try before');
});

test('closing an order is sent again only while it is sure that nothing was done', async (t) => {
  const order = { id: 3, petId: 1, status: 'delivered', placedAt: '2026-01-01T00:00:00.000Z' };
  const sure = inTurn(refusal(503, 'unavailable'), refusal(429, 'rate_limited'), json(order));
  const { client, front } = await harness(t, sure);
  assert.deepEqual(await client.updateOrder(3, 'delivered'), order);
  for (const fault of ['lost' as const, refusal(503, 'outcome_unknown'), { status: 502 }]) {
    front.fault = inTurn(fault, json(order));
    const { tries, outcomeUnknown } = await failure(client.updateOrder(3, 'delivered'));
    assert.deepEqual([tries, outcomeUnknown], [1, true]);
    assert.deepEqual(await client.getOrder(3), order, 'the second request');
  }
});

const never = () => new Promise<never>(() => {});

test('a signal ends a call that has no connection yet, the budget one whose reply drips, which is no silence', async (t) => {
  const stop = new AbortController();
  const server = createServer((socket) => {
    t.after(() => socket.destroy());
    socket.on('error', () => {});
    if (!stop.signal.aborted) return stop.abort(); // this one never shakes hands
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n[');
    const drip = setInterval(() => socket.write(' '), 2);
    socket.on('close', () => clearInterval(drip));
  });
  t.after(() => server.close());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const mute = await harness(t, never, { baseUrl: `https://${address}` });
  assert.equal((await failure(mute.client.createPet(newPet, { signal: stop.signal }))).code, 'aborted');

  const { client } = await harness(t, never, { baseUrl: `http://${address}`, budgetMs: 2_500 });
  const error = await failure(client.createPet(newPet));
  assert.deepEqual([error.code, error.status, error.tries, error.outcomeUnknown], ['timeout', 200, 1, true]);
  assert.match(error.message, /within 2500 ms/);
});

test('one signal serves a hundred calls without a warning, and nothing stays in it', async (t) => {
  const warned = t.mock.method(process, 'emitWarning', () => {});
  const { client } = await harness(t, () => json([REX]));
  const { signal } = new AbortController();
  await Promise.all(Array.from({ length: 100 }, () => all(client.listPets({ signal }))));
  assert.deepEqual([getEventListeners(signal, 'abort').length, warned.mock.callCount()], [0, 0]);
});

test('a silent try is repeated, by real timers', async (t) => {
  let tries = 0;
  // The second is answered within this process, before any timer: a machine that is busy does not make that one silent too.
  const own: Fetch = async (url, init) => (++tries === 1 ? fetch(url, init) : new Response(made.body, made));
  const { client } = await harness(t, never, { timeoutMs: 600, fetch: own });
  assert.deepEqual(await client.createPet(newPet), REX);
  assert.equal(tries, 2);
});

test('a signal, or close, ends what is under way, what waits for its time or turn, and what comes after', async (t) => {
  const busy = refusal(503, 'unavailable', { ...wait(60), connection: 'close' });
  /** The client's own way of waiting, but of no length: it ends by the signal alone. */
  const sleep = (_: number, signal: AbortSignal) => once(signal, 'abort').then(never);
  for (const code of ['aborted', 'closed']) {
    const stop = new AbortController();
    const fault = ({ method }: { method: string }) => (method === 'POST' ? busy : isOver ? json(REX) : never());
    let isOver = false;
    const { client, front } = await harness(t, fault, { timing: { sleep } });
    const { signal } = stop;
    const waiting = failure(client.createPet(newPet, { signal }));
    await until(() => front.asked.length === 1);
    const under = [1, 2, 3, 4].map((id) => failure(client.putCategory(id, 'Dogs', { signal })));
    await until(() => front.asked.length === 5);
    const queued = failure(client.putCategory(5, 'Cats', { signal }));
    const next = code === 'aborted' ? client.getPet(1) : undefined;
    isOver = true;
    if (code === 'closed') await client.close();
    else stop.abort('enough');
    const errors = await Promise.all([waiting, ...under, queued, failure(client.createPet(newPet, { signal }))]);
    const told = errors.map((error) => `${error.code} ${error.tries} ${error.outcomeUnknown}`);
    const expected = ['1 false', '1 true', '1 true', '1 true', '1 true', '0 false', '0 false'];
    assert.deepEqual(
      told,
      expected.map((rest) => `${code} ${rest}`),
    );
    assert.equal(errors[1].cause, signal.reason);
    assert.deepEqual(await next, next && REX, 'the turn of who gave up goes to the next');
    assert.equal(front.asked.length, next ? 6 : 5);
    await client.close();
  }
});
