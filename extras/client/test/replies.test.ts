/** What the client sends, and what it makes of replies: ids, pages, conditions, and replies that are not the service's. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { PetstoreError } from '../client.ts';
import { all, created, failure, harness, html, inTurn, json, newPet, ORDER, REX, refusal } from './proxy.ts';

test('ids are exact both ways: a number up to 2^53 − 1, its digits beyond', async (t) => {
  const { client, proxy } = await harness(t, ({ body }) =>
    json(
      `{"id":9007199254740993,"name":"\\"9007199254740993 is no id","categoryId":${/-?\d+/.exec(body) ?? 1},"status":"sold"}`,
    ),
  );
  for (const written of ['9007199254740991', '9007199254740993', '-9223372036854775808', '9223372036854775807', '-5']) {
    const categoryId = Number.isSafeInteger(Number(written)) ? Number(written) : written;
    for (const given of [categoryId, written, BigInt(written)]) {
      const pet = await client.createPet({ name: 'Rex', categoryId: given });
      assert.deepEqual(pet, { id: '9007199254740993', name: '"9007199254740993 is no id', categoryId, status: 'sold' });
      assert.equal(proxy.received.at(-1)?.body, `{"name":"Rex","categoryId":${written}}`);
      await client.getPet(given);
      assert.equal(proxy.received.at(-1)?.path, `/v1/pets/${written}`);
    }
  }
});

test('what cannot be sent exactly is refused without a request', async (t) => {
  const { client, proxy } = await harness(t, () => created);
  const circle: { name: unknown; categoryId: number } = { name: '', categoryId: 1 };
  circle.name = circle;
  const ids = [2 ** 53, 1.5, Number.NaN, 2n ** 63n, '1.0', 'x', '', undefined, null, {}] as number[];
  const calls = [
    ...ids.flatMap((id) => [client.getPet(id), client.deletePet(id), client.createOrder(id)]),
    client.updatePet(1, { categoryId: 1.5 }),
    all(client.listPets({ after: 1.5 })),
    client.createPet(circle as never),
    client.createPet({ name: 1n, categoryId: 1 } as never),
    client.createPet(newPet, { idempotencyKey: 'a\r\nb' }),
    client.getPet(1, { headers: { 'a b': 'c' } }),
  ];
  for (const { code, tries, outcomeUnknown } of await Promise.all(calls.map(failure)))
    assert.deepEqual([code, tries, outcomeUnknown], ['invalid_argument', 0, false]);
  assert.equal(proxy.received.length, 0);
});

test('an animal is changed in the members that are given, and removed; If-Match goes with both', async (t) => {
  const { client, proxy } = await harness(t, ({ method }) =>
    method === 'DELETE' ? { status: 204 } : json(REX, { ETag: '"b"' }),
  );
  const changes = { name: undefined, categoryId: '9007199254740993' };
  const { data, etag } = await client.updatePet(7, changes, { ifMatch: '"a"' }).withResponse();
  assert.deepEqual([data, etag], [REX, '"b"']);
  await client.updatePet(7, { name: 'Max' });
  const { status, ...gone } = await client.deletePet('7', { ifMatch: '"b"' }).withResponse();
  assert.deepEqual([status, gone.data], [204, undefined]);
  assert.equal(await client.deletePet(7n), undefined);
  const sent = proxy.received.map(({ method, path, headers, body }) => [method, path, headers['if-match'], body]);
  assert.deepEqual(sent, [
    ['PATCH', '/v1/pets/7', '"a"', '{"categoryId":9007199254740993}'],
    ['PATCH', '/v1/pets/7', undefined, '{"name":"Max"}'],
    ['DELETE', '/v1/pets/7', '"b"', ''],
    ['DELETE', '/v1/pets/7', undefined, ''],
  ]);
  for (const answer of [{ status: 200 }, json(REX), html(200)]) {
    proxy.fault = () => answer;
    assert.equal((await failure(client.deletePet(7))).code, 'bad_reply', 'only a 204 says that it is removed');
  }
  proxy.fault = () => ({ status: 204 });
  assert.equal((await failure(client.updatePet(7, { name: 'Max' }))).code, 'bad_reply');
});

test('withResponse has the facts of the reply: its id, limits and tag, whether it is a replay or new', async (t) => {
  const RateLimit = '"minute";r=3;t=9, "day";r=40;t=99';
  const facts = { RateLimit, 'RateLimit-Policy': '"minute";q=60;w=60, "day";q=1000;w=86400', ETag: '"a"' };
  const replay = json(REX, { 'Idempotent-Replayed': 'true' }, 201);
  const answers = inTurn('lost', json(REX, { ...facts, 'x-request-id': 'r' }, 201), replay, json(REX));
  const { client, proxy } = await harness(t, answers);
  const first = await client.createPet(newPet).withResponse();
  const { data, status, requestId, etag, limits, isNew, isReplay, tries } = first;
  assert.deepEqual([data, status, requestId, etag, tries], [REX, 201, 'r', '"a"', 2]);
  assert.deepEqual([isNew, isReplay], [true, false]);
  assert.deepEqual(limits?.minute, { limit: 60, remaining: 3, resetsInSeconds: 9 });
  assert.deepEqual(client.limits?.day, { limit: 1000, remaining: 40, resetsInSeconds: 99 });
  const second = await client.createPet(newPet).withResponse();
  assert.deepEqual([second.isNew, second.isReplay, second.etag], [false, true, undefined]);
  assert.equal((await client.putCategory(1, 'Dogs').withResponse()).isNew, false);
  proxy.fault = () => refusal(404, 'not_found');
  await assert.rejects(client.getPet(1).withResponse(), PetstoreError); // and nothing else is left unhandled
});

test('a reply that is not the service’s is bad_reply; it is read to its end, so its connection serves again', async (t) => {
  const { client, proxy } = await harness(t, () => html(500));
  const check = async (answer: ReturnType<typeof json>) => {
    proxy.fault = () => answer;
    const tries = [500, 502, 503, 504, 520].includes(answer.status) ? 6 : 1;
    const error = await failure(all(client.listPets()));
    const found = [error.code, error.status, error.tries, proxy.received.splice(0).length];
    assert.deepEqual(found, ['bad_reply', answer.status, tries, tries], answer.body?.slice(0, 80));
  };
  for (const status of [200, 404, 500, 502, 503, 504, 520]) await check(html(status));
  await check(json([], {}, 418));
  await check({ status: 302, headers: { location: 'http://127.0.0.1:1/' } });
  await check({ status: 304 });
  for (const body of ['{}', JSON.stringify(REX), '[{"name":"Rex"}]']) await check(json(body));
  for (const id of ['null', '1.5', '1e99', '"a1"', '""', '[1]', '9223372036854775808'])
    await check(json(`[{"id":${id}}]`));
  assert.equal(proxy.connections, 1);
});

test('bytes that are not UTF-8 are a bad reply', async (t) => {
  const fetch = async () => new Response(new Uint8Array([0x7b, 0x22, 0xff, 0x7d]));
  const { client } = await harness(t, () => 'lost', { fetch });
  assert.match((await failure(client.getOrder(1))).message, /^200 of no type from GET .*, not the service's$/);
});

test('a hostile body of 512 KB costs no more time than any other', async (t) => {
  let body = '';
  const { client } = await harness(t, () => 'lost', { fetch: async () => new Response(body) });
  for (const part of ['"\\', '\\"', '"', '"a', '1', '-', '1.', '"\n', '[', '{"a":', '123456789012345678 ']) {
    body = `"${part.repeat(512_000 / part.length)}`;
    const before = process.cpuUsage();
    await failure(client.getPet(1));
    const { user, system } = process.cpuUsage(before);
    assert.ok(user + system < 3_000_000, `${part}: ${user + system} µs`); // a square of its length would take minutes
  }
});

test('pages follow the Link of each reply, also behind a proxy that adds a prefix', async (t) => {
  for (const prefix of ['', '/shop']) {
    const fault = ({ path }: { path: string }) => {
      const after = Number(new URL(path, 'http://x').searchParams.get('after') ?? 0);
      const Link = `<https://x.test/docs>; rel="help", </v1/pets?status=sold&after=${after + 2}>; Rel="last NEXT"`;
      const pets = [1, 2].map((n) => ({ ...REX, id: after + n }));
      return json(pets, after < 6 ? { Link } : {});
    };
    const { client, proxy } = await harness(t, fault, { path: `${prefix}/v1` });
    const options: { status: 'sold' | 'pending' } = { status: 'sold' };
    const listing = client.listPets(options);
    options.status = 'pending'; // the listing has the options of its making
    const pets = await all(listing);
    assert.equal(`${pets.map(({ id }) => id)}`, '1,2,3,4,5,6,7,8');
    for await (const _ of client.listPets({ limit: 2, after: 3n })) break; // requests no more
    const queries = ['limit=100&status=sold', ...[2, 4, 6].map((after) => `status=sold&after=${after}`)];
    const expected = [...queries, 'limit=2&after=3'].map((query) => `${prefix}/v1/pets?${query}`);
    assert.equal(proxy.received.map(({ path }) => path).join('\n'), expected.join('\n'));
  }
});

test('a page says how to go on, and the first may be requested only if it has changed', async (t) => {
  const page = (ids: number[], headers = {}) =>
    json(
      ids.map((id) => ({ ...REX, id })),
      { ETag: `"${ids}"`, ...headers },
    );
  const Link = '</v1/pets?limit=2&after=9007199254740993>; rel="next"';
  const { client, proxy } = await harness(t, inTurn(page([1, 2], { Link }), page([3])));
  const pages = await all(client.listPets({ limit: 2 }).pages());
  const facts = pages.map(({ items, after, response }) => [items.length, after, response.etag]);
  assert.deepEqual(facts, [
    [2, '9007199254740993', '"1,2"'],
    [1, undefined, '"3"'],
  ]);
  proxy.fault = ({ headers }) =>
    headers['if-none-match'] === '"1"' ? { status: 304, headers: { ETag: '"1"' } } : page([1]);
  const listing = client.listPets({ status: 'sold' });
  const first = await listing.page();
  assert.equal(await listing.page(first.response.etag), undefined);
});

test('a Link never takes the key elsewhere, nor back, nor on from no id', async (t) => {
  const thief = await harness(t, () => json([]));
  const { client, proxy } = await harness(t, () => 'lost');
  const linkTo = (target: string) => json([REX], { Link: `<${target}>; rel=next` });
  for (const target of [`${thief.proxy.url}/v1/pets?after=1`, '//x.test/v1/pets?after=1', '/v1/../x?after=1']) {
    proxy.fault = inTurn(linkTo(target), json([]));
    await all(client.listPets());
    assert.equal(proxy.received.splice(0)[1].path, '/v1/pets?after=1', target);
  }
  assert.equal(thief.proxy.received.length, 0);
  for (const query of ['', '?limit=100', '?after=', '?after=x', '?after=1.5', '?after=9223372036854775808']) {
    proxy.fault = () => linkTo(`/v1/pets${query}`);
    assert.equal((await failure(client.listPets().page())).code, 'bad_reply', query);
  }
  proxy.received.length = 0;
  proxy.fault = ({ path }) => linkTo(path.includes('after=7') ? '?after=5' : '?after=7');
  const error = await failure(all(client.listPets()));
  assert.deepEqual([error.code, error.status, error.tries, proxy.received.length], ['bad_reply', 200, 1, 2]);
  const links: [Link: string, after: number | undefined][] = [
    ['<a?after=1>; title="next"; rel="prev", </v1/pets?after=2>; rel="next"', 2],
    ['</v1/pets?after=2>; REL=next', 2],
    ['</v1/pets?after=2> ; rel = "last next" ; title=x', 2],
    ['</v1/pets?after=2>;rel=next,<b?after=1>;rel=prev', 2],
    ['</v1/pets?after=2>; rel="nextish"', undefined],
    ['</v1/pets?after=2>', undefined],
    ['<a?after=2; rel=next', undefined],
  ];
  for (const [Link, after] of links) {
    proxy.fault = () => json([REX], { Link });
    assert.equal((await client.listPets().page()).after, after, Link);
  }
});

test('all operations have the address and body of the interface', async (t) => {
  const { client, proxy } = await harness(t, ({ method, path }) => {
    if (method === 'DELETE') return { status: 204 };
    return json(path.includes('?') ? [] : path.includes('order') ? ORDER : REX);
  });
  await client.createPet({ name: 'Rex', categoryId: 2, status: 'sold' });
  await client.createPet({ stauts: 'sold', ...newPet } as never); // the service refuses it by name
  await client.createOrder(1);
  await client.updateOrder(3, 'cancelled');
  await client.getOrder(3);
  await client.putCategory(-5, 'Dogs');
  await all(client.listOrders({ status: 'placed', limit: 5 }));
  await all(client.listCategories({ after: -6 }));
  const sent = proxy.received.map(({ method, path, body }) => `${method} ${path} ${body}`.trim());
  assert.deepEqual(sent, [
    'POST /v1/pets {"name":"Rex","status":"sold","categoryId":2}',
    'POST /v1/pets {"stauts":"sold","name":"Rex","categoryId":1}',
    'POST /v1/store/orders {"petId":1}',
    'PATCH /v1/store/orders/3 {"status":"cancelled"}',
    'GET /v1/store/orders/3',
    'PUT /v1/categories/-5 {"name":"Dogs"}',
    'GET /v1/store/orders?limit=5&status=placed',
    'GET /v1/categories?limit=100&after=-6',
  ]);
});
