/** What the client makes of replies: exact integers, pages, warnings, and whatever is no reply of the service. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { inspect } from 'node:util';
import { MAX_REPLY_BYTES } from '../../src/client/calls.ts';
import { PetstoreClient } from '../../src/client/client.ts';
import { type Answer, inTurn, json, REX, refusal } from './front.ts';
import { all, failure, harness, KEY, newPet } from './harness.ts';

const html = (status: number): Answer => ({ status, headers: { 'content-type': 'text/html' }, body: '<h1>Sorry</h1>' });

test('ids are exact both ways, and survive JSON: a number up to 2^53 − 1, its digits beyond', async (t) => {
  const { client, front } = await harness(t, ({ body }) =>
    json(`{"id":9007199254740993,"name":"Rex","categoryId":${/-?\d+/.exec(body) ?? 1},"status":"sold"}`),
  );
  for (const written of ['9007199254740991', '9007199254740993', '-9223372036854775808', '9223372036854775807', '-5']) {
    const categoryId = Number.isSafeInteger(Number(written)) ? Number(written) : written;
    for (const given of [categoryId, written, BigInt(written)]) {
      const pet = await client.createPet({ name: 'Rex', categoryId: given });
      assert.deepEqual(pet, { id: '9007199254740993', name: 'Rex', categoryId, status: 'sold' });
      assert.deepEqual(JSON.parse(JSON.stringify(pet)), pet);
      assert.equal(front.asked.at(-1)?.body, `{"categoryId":${written},"name":"Rex"}`);
      await client.getPet(given);
      assert.equal(front.asked.at(-1)?.path, `/v1/pets/${written}`);
    }
  }
  const before = front.asked.length;
  for (const id of [2 ** 53, 1.5, Number.NaN, 2n ** 63n, '1.0', 'x', '']) {
    const calls = [
      client.createPet({ name: 'Rex', categoryId: id }),
      client.getPet(id),
      all(client.listPets({ after: id })),
    ];
    for (const call of calls) assert.equal((await failure(call)).code, 'invalid_argument');
  }
  const unsendable = await failure(client.createPet(newPet, { idempotencyKey: 'a\r\nb' }));
  assert.deepEqual([unsendable.code, unsendable.outcomeUnknown], ['invalid_argument', false]);
  assert.equal(front.asked.length, before, 'nothing of it was sent');
});

test('errors tell code, status and request id, and never the key', async (t) => {
  const { client } = await harness(t, () => refusal(400, 'invalid_parameter'));
  const error = await failure(all(client.listPets({ limit: 101 })));
  const { name, code, status, requestId, message, tries } = error;
  assert.deepEqual([name, code, status, requestId, tries], ['PetstoreError', 'invalid_parameter', 400, 'r-1', 1]);
  assert.equal(message, 'because of invalid_parameter');
  for (const shown of [error, client]) assert.ok(!inspect(shown, { depth: 9, showHidden: true }).includes(KEY));
});

test('what is no reply of the service; each is read to its end, so its connection serves again', async (t) => {
  const cases: [Answer, tries: number][] = [
    [html(200), 1],
    [html(404), 1],
    ...[502, 503, 504].map((status): [Answer, number] => [html(status), 6]),
    [json([], {}, 418), 1],
    [{ status: 302, headers: { location: 'http://127.0.0.1:1/' } }, 1],
    [json({}), 1],
    [json(REX), 1],
    [json([{ name: 'Rex' }]), 1],
    [json('[{"id":1,"id":2}]'), 1],
  ];
  const { client, front } = await harness(t, () => ({ status: 500 }));
  const check = async ([answer, tries]: [Answer, number]) => {
    front.fault = () => answer;
    const before = front.asked.length;
    const { code, status, tries: told } = await failure(all(client.listPets()));
    const found = [code, status, told, front.asked.length - before];
    assert.deepEqual(found, ['bad_reply', answer.status, tries, tries], answer.body?.slice(0, 80));
  };
  for (const one of cases) await check(one);
  // undici may open a second one when the first is just being given back.
  assert.ok(front.connections <= 2, `${front.connections} connections`);
  await check([json([{ ...REX, name: 'x'.repeat(MAX_REPLY_BYTES) }]), 1]);
  await client.close();
  await front.allClosed();
});

test('pages follow the Link of each reply, also behind a proxy that adds a prefix', async (t) => {
  for (const prefix of ['', '/shop']) {
    const fault = ({ path }: { path: string }) => {
      const after = Number(new URL(path, 'http://x').searchParams.get('after') ?? 0);
      const items = [1, 2].map((n) => ({ ...REX, id: after + n }));
      const link = `<https://x.test/docs>; rel="help", </v1/pets?status=sold&after=${after + 2}>; Rel="last NEXT"`;
      return json(items, after < 6 ? { Link: link } : {});
    };
    const { client, front } = await harness(t, fault, { path: `${prefix}/v1` });
    const pets = await all(client.listPets({ status: 'sold' }));
    assert.equal(`${pets.map(({ id }) => id)}`, '1,2,3,4,5,6,7,8');
    for await (const _ of client.listPets({ limit: 2, after: 3n })) break; // asks for no more
    const queries = ['limit=100&status=sold', ...[2, 4, 6].map((after) => `status=sold&after=${after}`)];
    const expected = [...queries, 'limit=2&after=3'].map((query) => `${prefix}/v1/pets?${query}`);
    assert.deepEqual(
      front.asked.map(({ path }) => path),
      expected,
    );
  }
});

test('a Link never takes the key elsewhere, and never leads in a circle of one', async (t) => {
  const thief = await harness(t, () => json([]));
  for (const target of [`${thief.front.url}/pets?after=1`, '//x.test/v1/pets?after=1', '/v1/../x?after=1']) {
    const { client, front } = await harness(t, inTurn(json([REX], { Link: `<${target}>; rel=next` }), json([])));
    await all(client.listPets());
    assert.equal(front.asked[1].path, '/v1/pets?after=1', target);
  }
  assert.equal(thief.front.asked.length, 0);
  for (const target of ['/v1', '?limit=100', 'http://[', '/v1/%2e%2e/x']) {
    const { client, front } = await harness(t, () => json([REX], { Link: `<${target}>; rel=next` }));
    const error = await failure(all(client.listPets()));
    assert.deepEqual([error.code, front.asked.length], ['bad_reply', 1], target);
  }
});

test('both windows of the limits are known', async (t) => {
  const RateLimit = '"minute";r=59;t=60, "day";r=12;t=3600';
  const headers = { RateLimit, 'RateLimit-Policy': '"minute";q=60;w=60, "day";q=1000;w=86400' };
  const { client, front } = await harness(t, () => json([], headers));
  assert.equal(client.limits, undefined);
  await all(client.listPets());
  front.fault = () => html(404); // what says nothing changes nothing
  await failure(all(client.listPets()));
  const { at, ...windows } = client.limits ?? { at: new Date(0) };
  assert.deepEqual(windows, {
    minute: { limit: 60, remaining: 59, resetsInSeconds: 60 },
    day: { limit: 1000, remaining: 12, resetsInSeconds: 3600 },
  });
  assert.ok(Math.abs(at.getTime() - Date.now()) < 60_000);
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
