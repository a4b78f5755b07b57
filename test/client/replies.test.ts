/** What the client makes of replies: exact integers, pages, warnings, and whatever is no reply of the service. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { type PetstoreClient, PetstoreError } from '../../src/client/client.ts';
import { MAX_REPLY_BYTES } from '../../src/client/exchange.ts';
import { type Answer, inTurn, json, REX, refusal } from './front.ts';
import { failure, harness } from './harness.ts';

const html = (status: number): Answer => ({ status, headers: { 'content-type': 'text/html' }, body: '<h1>Sorry</h1>' });

test('int64 is exact both ways: a number where that is safe, a bigint beyond', async (t) => {
  const sent = ['9007199254740991', '9007199254740993', '-9223372036854775808', '9223372036854775807', '-5'];
  const { client, front } = await harness(t, ({ body }) =>
    json(
      `{"id":9007199254740993,"name":"Rex","categoryId":${/"categoryId":([^}]*)/.exec(body)?.[1] ?? 1},"status":"sold"}`,
    ),
  );
  for (const text of sent) {
    const categoryId = Number.isSafeInteger(Number(text)) ? Number(text) : BigInt(text);
    const pet = await client.createPet({ name: 'Rex', categoryId });
    assert.deepEqual(pet, { id: 9007199254740993n, name: 'Rex', categoryId, status: 'sold' });
    assert.equal(front.asked.at(-1)?.body, `{"name":"Rex","categoryId":${text}}`);
  }
  await client.getPet(9007199254740993n);
  assert.equal(front.asked.at(-1)?.path, '/v1/pets/9007199254740993');

  const before = front.asked.length;
  for (const categoryId of [2 ** 53, 1.5, Number.NaN, 2n ** 63n]) {
    assert.equal((await failure(client.createPet({ name: 'Rex', categoryId }))).code, 'invalid_argument');
    assert.equal((await failure(client.getPet(categoryId))).code, 'invalid_argument');
    assert.equal((await failure(client.listPets({ after: categoryId }).page())).code, 'invalid_argument');
  }
  assert.equal(
    (await failure(client.createPet({ name: 'Rex', categoryId: 1 }, { idempotencyKey: 'a\r\nb' }))).code,
    'invalid_argument',
  );
  assert.equal(front.asked.length, before, 'nothing of it was sent');
});

test('names go and come as they are', async (t) => {
  const { client } = await harness(t, ({ body }) => json(`{"id":1,"status":"available",${body.slice(1)}`, {}, 201));
  for (const name of ['Ünï 🐶', '"\\\n\u0000', '<img src=x onerror=alert(1)>', '__proto__']) {
    assert.equal((await client.createPet({ name, categoryId: 1 })).name, name);
  }
});

test('errors tell code, status and request id, and never the key', async (t) => {
  const { client } = await harness(t, inTurn(refusal(400, 'invalid_parameter')));
  const error = await failure(client.listPets({ limit: 101 }).page());
  assert.ok(error instanceof PetstoreError && error instanceof Error);
  const { name, code, status, requestId, message, tries } = error;
  assert.deepEqual([name, code, status, requestId, tries], ['PetstoreError', 'invalid_parameter', 400, 'r-1', 1]);
  assert.equal(message, 'because of invalid_parameter');
  const { inspect } = await import('node:util');
  const shown = inspect(error, { depth: 9, showHidden: true }) + inspect(client, { depth: 9, showHidden: true });
  assert.doesNotMatch(shown, /ps_live_key/);
});

test('what is no reply of the service', async (t) => {
  const long = json([{ ...REX, name: 'x'.repeat(MAX_REPLY_BYTES) }]);
  const cases: [Answer, number, RegExp][] = [
    [html(200), 1, /status 200.*not JSON/],
    [html(404), 1, /status 404.*not JSON/],
    [html(502), 2, /status 502.*not JSON/],
    [html(503), 2, /status 503.*not JSON/],
    [html(504), 2, /status 504.*not JSON/],
    [json([], {}, 418), 1, /status 418.*no Error body/],
    [{ status: 302, headers: { location: 'http://127.0.0.1:1/' } }, 1, /status 302/],
    [long, 1, /more than 1048576 bytes/],
    [json({}), 1, /not a reply of listPets: not an array/],
    [json([{ ...REX, id: '1' }]), 1, /"id" is not an int64/],
    [json([{ ...REX, status: 'lost' }]), 1, /"status" is none of available, pending, sold/],
    [json('[{"id":1,"id":2}]'), 1, /not JSON/],
  ];
  for (const [answer, tries, message] of cases) {
    const { client, front } = await harness(t, () => answer, { tries: 2 });
    const error = await failure(client.listPets().page());
    assert.deepEqual([error.code, error.status, error.tries], ['bad_reply', answer.status, tries], `${message}`);
    assert.match(error.message, message);
    assert.equal(front.asked.length, tries);
  }
});

test('every reply is read to its end, so its connection serves again; what is too long frees its own', async (t) => {
  const long = json([{ ...REX, name: 'x'.repeat(3 * MAX_REPLY_BYTES) }]);
  const mixed = [refusal(400, 'invalid_body'), html(404), html(502), json([REX]), refusal(503, 'unavailable')];
  let answer = mixed[0];
  const { client, front } = await harness(t, () => answer, { tries: 1 });
  const ask = (next: Answer) => {
    answer = next;
    return client
      .listPets()
      .page()
      .catch(() => {});
  };
  for (let round = 0; round < 10; round++) for (const next of mixed) await ask(next);
  // undici may open a second one when the first is just being given back.
  assert.ok(front.connections <= 2, `${front.connections} connections`);
  await ask(long);
  while (!front.newest?.destroyed) await new Promise(setImmediate);
  await client.close();
  await front.allClosed();
});

async function all(client: PetstoreClient, limit?: number): Promise<unknown[]> {
  const ids: unknown[] = [];
  for await (const { id } of client.listPets({ status: 'sold', limit })) ids.push(id);
  return ids;
}

test('pages follow the Link of each reply', async (t) => {
  const pages = (path: string) => {
    const after = Number(new URL(path, 'http://x').searchParams.get('after') ?? 0);
    const items = [1, 2].map((n) => ({ ...REX, id: after + n }));
    const link = `<https://x.test/docs>; title="a, \\"b\\"; rel=next", </v1/pets?status=sold&after=${after + 2}>; Rel="last NEXT"`;
    return json(items, after < 6 ? { Link: link } : {});
  };
  const { client, front } = await harness(t, ({ path }) => pages(path));
  assert.deepEqual(await all(client), [1, 2, 3, 4, 5, 6, 7, 8]);
  assert.deepEqual(
    front.asked.map(({ path }) => path),
    ['/v1/pets?status=sold&limit=100', ...[2, 4, 6].map((after) => `/v1/pets?status=sold&after=${after}`)],
  );

  const first = await client.listPets({ limit: 2 }).page();
  assert.deepEqual([first.items.map(({ id }) => id), first.nextAfter], [[1, 2], 2]);
  const last = await client.listPets({ after: 6 }).page();
  assert.deepEqual([last.items.map(({ id }) => id), last.nextAfter], [[7, 8], undefined]);

  const count = front.asked.length;
  for await (const _ of client.listPets()) break;
  assert.equal(front.asked.length, count + 1, 'who stops reading asks for no more');
});

test('a Link never takes the key elsewhere', async (t) => {
  const thief = await harness(t, () => json([]));
  const elsewhere = [
    `${thief.front.url}/pets`,
    '//x.test/v1/pets',
    '/v2/pets',
    '/v1/../pets',
    '/v1/%2e%2e/pets',
    '/v1',
  ];
  for (const target of [...elsewhere, '?limit=100', 'http://[']) {
    const { client, front } = await harness(t, () => json([REX], { Link: `<${target}>; rel=next` }));
    const error = await failure(client.listPets({ limit: 100 }).page());
    assert.equal(error.code, 'bad_reply', target);
    assert.match(error.message, /leads out of the service, or to this same page/);
    assert.equal(front.asked.length, 1);
  }
  assert.equal(thief.front.asked.length, 0);
});

test('a deprecated operation is told of once, with the day it ends', async (t) => {
  const dying = { Deprecation: '@1767225600', Sunset: 'Thu, 05 Dec 2030 00:00:00 GMT' };
  const warnings: string[] = [];
  const { client } = await harness(t, ({ path }) => (path.includes('/pets/') ? json(REX, dying) : json([REX])), {
    onWarning: (message) => warnings.push(message),
  });
  await client.listPets().page();
  assert.deepEqual(warnings, []);
  for (let time = 0; time < 3; time++) await client.getPet(1);
  assert.deepEqual(warnings, ['getPet is deprecated; it ends on Thu, 05 Dec 2030 00:00:00 GMT']);
});

test('an order whose closing got no reply and is found closed: thrown, with the doubt', async (t) => {
  const order = { id: 3, petId: 1, status: 'delivered', placedAt: '2026-01-01T00:00:00.000Z' };
  const clear = await harness(t, () => refusal(409, 'order_closed'));
  assert.equal((await failure(clear.client.closeOrder(3, 'delivered'))).outcomeUnknown, false);

  const doubtful = await harness(t, inTurn('lost', refusal(409, 'order_closed')));
  const error = await failure(doubtful.client.closeOrder(3, 'delivered'));
  assert.deepEqual([error.code, error.tries, error.outcomeUnknown], ['order_closed', 2, true]);

  const late = await harness(t, inTurn('lost', json(order)));
  assert.deepEqual(await late.client.closeOrder(3, 'delivered'), order);
});

test('options that cannot be meant are refused', async () => {
  const { PetstoreClient } = await import('../../src/client/client.ts');
  for (const baseUrl of ['ftp://x/v1', 'http://u@x/v1', 'http://x/v1?a', 'http://x/v1#a', 'v1']) {
    assert.throws(() => new PetstoreClient({ baseUrl, key: 'k' }), TypeError, baseUrl);
  }
  for (const wrong of [
    { tries: 0 },
    { tries: 1.5 },
    { budgetMs: Number.POSITIVE_INFINITY },
    { tryTimeoutMs: 2 ** 31 },
  ]) {
    assert.throws(() => new PetstoreClient({ baseUrl: 'http://x/v1', key: 'k', ...wrong }), RangeError);
  }
});
