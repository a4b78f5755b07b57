/** What a caller may bring and ask for: fetch, hooks, options of one call, the reply itself, pages. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type Exchange, type Fetch, PetstoreClient, PetstoreError } from '../../src/client/client.ts';
import { all, failure, harness, inTurn, json, KEY, newPet, REX, refusal } from './front.ts';

const made = json(REX, { 'x-request-id': 'r-2' }, 201);
const never = () => new Promise<never>(() => {});

test('a fetch of the caller’s is used as it is, and one that hears of nothing ends all the same', async (t) => {
  const urls: string[] = [];
  const own: Fetch = (url, init) => {
    urls.push(`${init.method} ${url}`);
    return fetch(url, init);
  };
  const { client, front } = await harness(t, () => made, { fetch: own });
  await client.createPet(newPet);
  assert.deepEqual(urls, [`POST ${front.url}/v1/pets`]);

  const deaf = await harness(t, () => made, { fetch: never });
  const late = await failure(deaf.client.createPet(newPet, { timeoutMs: 20, retries: 1 }));
  assert.deepEqual([late.code, late.tries, late.outcomeUnknown], ['timeout', 2, true]);
  const stopped = await failure(deaf.client.createPet(newPet, { signal: AbortSignal.timeout(20) }));
  assert.deepEqual([stopped.code, stopped.tries], ['aborted', 1]);
  const broken = await harness(t, () => made, { fetch: (() => undefined) as never });
  assert.equal((await failure(broken.client.getPet(1, { retries: 0 }))).code, 'network');
});

test('onExchange hears of each try, and cannot do harm', async (t) => {
  const heard: Exchange[] = [];
  const answers = inTurn('lost', refusal(503, 'unavailable', { 'Retry-After': '2' }), made, refusal(404, 'not_found'));
  const { client } = await harness(t, answers, { onExchange: (exchange) => heard.push(exchange) });
  await client.createPet(newPet);
  await failure(client.getPet(7));
  const told = heard.map((one) => [
    one.operation,
    one.method,
    one.tries,
    one.status,
    one.code,
    one.requestId,
    one.waitMs,
  ]);
  assert.deepEqual(told, [
    ['createPet', 'POST', 1, 0, 'network', undefined, 200],
    ['createPet', 'POST', 2, 503, 'unavailable', 'r-1', 2_000],
    ['createPet', 'POST', 3, 201, undefined, 'r-2', undefined],
    ['getPet', 'GET', 1, 404, 'not_found', 'r-1', undefined],
  ]);
  const thrown: unknown[] = [];
  const real = queueMicrotask;
  const guarded = (run: () => void) =>
    real(() => {
      try {
        run();
      } catch (error) {
        thrown.push(error);
      }
    });
  t.mock.method(globalThis, 'queueMicrotask', guarded);
  const onExchange = () => {
    throw new Error('of the hook');
  };
  const { client: other } = await harness(t, () => made, { onExchange });
  assert.deepEqual(await other.createPet(newPet), REX);
  assert.match(String(thrown), /of the hook/);
});

test('each call may have options of its own, the client’s hold for the others', async (t) => {
  const headers = { 'User-Agent': 'shop/1', 'X-Shop': 'a', authorization: 'mine' };
  const { client, front } = await harness(t, () => refusal(503, 'unavailable'), { retries: 1, headers });
  assert.equal((await failure(client.getPet(1))).tries, 2);
  assert.equal((await failure(client.getPet(1, { retries: 3, headers: { 'X-Shop': 'b' } }))).tries, 4);
  assert.equal((await failure(client.getPet(1, { retries: undefined }))).tries, 2);
  const sent = front.asked.map(({ headers: had }) => `${had['user-agent']} ${had['x-shop']} ${had.authorization}`);
  assert.deepEqual([...new Set(sent)], [`shop/1 a Bearer ${KEY}`, `shop/1 b Bearer ${KEY}`]);
  const plain = await harness(t, () => made);
  await plain.client.createPet(newPet, { signal: null });
  assert.equal(plain.front.asked[0].headers['user-agent'], 'petstore-client/source');
  plain.front.fault = never;
  const { code, tries } = await failure(plain.client.getPet(1, { budgetMs: 1_000, timeoutMs: 30, retries: 100 }));
  assert.deepEqual([code, tries], ['timeout', 3], 'after waits of 200 and 400 ms one of 800 is beyond the budget');
});

test('withResponse tells the reply: its id, limits and tag, whether it is a replay or made the thing', async (t) => {
  const RateLimit = '"minute";r=3;t=9, "day";r=40;t=99';
  const known = { RateLimit, 'RateLimit-Policy': '"minute";q=60;w=60, "day";q=1000;w=86400', ETag: '"a"' };
  const replay = json(REX, { 'Idempotent-Replayed': 'true' }, 201);
  const { client } = await harness(
    t,
    inTurn('lost', json(REX, { ...known, 'x-request-id': 'r' }, 201), replay, json(REX)),
  );
  const first = await client.createPet(newPet).withResponse();
  const { data, status, requestId, etag, limits, isNew, isReplay, tries } = first;
  assert.deepEqual([data, status, requestId, etag, tries], [REX, 201, 'r', '"a"', 2]);
  assert.deepEqual([isNew, isReplay, limits?.minute.remaining, limits?.day.limit], [true, false, 3, 1000]);
  const second = await client.createPet(newPet).withResponse();
  assert.deepEqual([second.isNew, second.isReplay, second.etag], [false, true, undefined]);
  const changed = await client.putCategory(1, 'Dogs').withResponse();
  assert.deepEqual([changed.isNew, changed.isReplay], [false, false]);
  const missing = await harness(t, () => refusal(404, 'not_found'));
  await assert.rejects(missing.client.getPet(1).withResponse(), PetstoreError); // and nothing else is left unhandled
});

test('pages are objects that say how to go on; the first may be asked for only if it has changed', async (t) => {
  const page = (ids: number[], headers = {}) =>
    json(
      ids.map((id) => ({ ...REX, id })),
      { ETag: `"${ids}"`, ...headers },
    );
  const Link = '</v1/pets?limit=2&after=9007199254740993>; rel="next"';
  const { client, front } = await harness(t, inTurn(page([1, 2], { Link }), page([3])));
  const pages = await all(client.listPets({ limit: 2 }).pages());
  assert.deepEqual(
    pages.map(({ items, after, response }) => [items.length, after, response.etag]),
    [
      [2, '9007199254740993', '"1,2"'],
      [1, undefined, '"3"'],
    ],
  );
  front.asked.length = 0;
  front.fault = ({ headers }) =>
    headers['if-none-match'] === '"1"' ? { status: 304, headers: { ETag: '"1"' } } : page([1]);
  const listing = client.listPets({ status: 'sold' });
  const first = await listing.page();
  assert.equal(await listing.page(first.response.etag!), undefined);
  assert.deepEqual(
    front.asked.map(({ headers }) => headers['if-none-match']),
    [undefined, '"1"'],
  );
  front.fault = () => ({ status: 304 });
  assert.equal((await failure(listing.page())).code, 'bad_reply', 'a 304 that nobody asked for');
});

test('ifMatch goes with a change, and 412 is told as what it is', async (t) => {
  const { client, front } = await harness(t, () => refusal(412, 'precondition_failed'));
  for (const call of [
    client.putCategory(1, 'Dogs', { ifMatch: '"a"' }),
    client.updateOrder(1, 'delivered', { ifMatch: '"a"' }),
  ]) {
    const { code, tries, outcomeUnknown } = await failure(call);
    assert.deepEqual([code, tries, outcomeUnknown], ['precondition_failed', 1, false]);
  }
  assert.deepEqual(
    front.asked.map(({ headers }) => headers['if-match']),
    ['"a"', '"a"'],
  );
});

test('an error in a log has its message and what is known, and neither key nor cause', async (t) => {
  const { client } = await harness(t, () => refusal(404, 'not_found'));
  const error = await failure(client.getPet(1));
  const { tries, outcomeUnknown, status, requestId, name } = error;
  const told = { name, code: 'not_found', message: 'because of not_found', status, requestId, tries, outcomeUnknown };
  assert.deepEqual(JSON.parse(JSON.stringify(error)), told);
});

test('what cannot be meant is refused by name, and never with an error of the language', async (t) => {
  const { client, front } = await harness(t, () => made);
  const odd = client as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>;
  const circle: Record<string, unknown> = {};
  circle.name = circle;
  const wrong: [call: () => Promise<unknown>, says: RegExp][] = [
    [() => odd.createPet(), /name|undefined/],
    [() => odd.createPet(null), /null/],
    [() => odd.createPet({ name: 1n, categoryId: 1 }), /BigInt/],
    [() => odd.createPet({ ...circle, categoryId: 1 }), /circular/],
    [() => odd.createPet({ name: 'Rex', categoryId: Symbol('x') }), /categoryId/],
    [() => odd.createPet(newPet, { retry: 3 }), /unknown option retry .*retries/],
    [() => odd.createPet(newPet, { ifMatch: '"a"' }), /unknown option ifMatch/],
    [() => odd.getPet(1, { idempotencyKey: 'a' }), /unknown option idempotencyKey/],
    [() => odd.getPet(1, null), /options must be an object/],
    [() => odd.getPet(1, { signal: {} }), /signal must be an AbortSignal/],
    [() => odd.getPet(1, { retries: -1 }), /retries must be a whole number from 0 to 100 \(got -1\)/],
    [() => odd.getPet(1, { timeoutMs: 0 }), /timeoutMs must be/],
    [() => odd.getPet(1, { headers: { 'a b': 'c' } }), /a b/],
    [() => all(client.listPets({ page: 2 } as object)), /unknown option page .*after/],
    [() => all(client.listCategories({ status: 'sold' } as object)), /unknown option status/],
    [() => all(client.listPets(null as never)), /options must be an object/],
  ];
  for (const [call, says] of wrong) {
    const error = await failure(call());
    assert.deepEqual([error.code, error.tries, error.outcomeUnknown], ['invalid_argument', 0, false]);
    assert.match(error.message, says);
  }
  assert.equal(front.asked.length, 0);
  const good = { baseUrl: 'http://x', key: KEY };
  const refuse = (options: unknown, says: RegExp) =>
    assert.throws(
      () => new PetstoreClient(options as never),
      (error: Error) => says.test(error.message),
    );
  refuse(undefined, /needs \{ baseUrl, key \}/);
  refuse({ ...good, baseURL: 'http://x' }, /unknown option baseURL .*baseUrl/);
  refuse({ ...good, onExchange: 1 }, /onExchange must be a function/);
  refuse({ ...good, fetch: 1 }, /fetch must be a function/);
  refuse({ ...good, baseUrl: undefined }, /baseUrl must be/);
  refuse({ ...good, key: 7 }, /key must be/);
});

const LEFT = `
import { createServer } from 'node:http';
import { PetstoreClient } from './src/client/client.ts';
const server = createServer((req, res) => req.url.endsWith('/9') ? undefined : res.end('{"id":1}')).listen(0, async () => {
  const store = new PetstoreClient({ baseUrl: 'http://127.0.0.1:' + server.address().port, key: '${KEY}' });
  await store.getPet(1, { signal: null });
  await store.getPet(1, { signal: {} }).catch(() => {});
  await store.getPet(9, { signal: AbortSignal.timeout(50) }).catch(() => {});
  await store.createPet({ name: 'Rex', categoryId: 1.5 }).catch(() => {});
  server.close();
  server.closeAllConnections();
});`;

test('nothing is left behind that holds the process', async () => {
  const cwd = fileURLToPath(new URL('../..', import.meta.url));
  const words = ['--import', 'tsx', '--input-type=module', '--eval', LEFT];
  await promisify(execFile)(process.execPath, words, { cwd, timeout: 20_000 }); // the budget would be 90 s
});
