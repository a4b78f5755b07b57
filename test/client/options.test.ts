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
});

test('a fetch that gives what is no Response is told so, whatever it gives or throws', async (t) => {
  const circle = Object.assign(Object.create(null), { body: null });
  const bodyOf = (chunk: unknown) => new ReadableStream({ start: (to) => to.enqueue(chunk) });
  const given: [what: unknown, says: RegExp][] = [
    ...[
      undefined,
      null,
      'x',
      7,
      Symbol('x'),
      {},
      circle,
      { status: 200 },
      { status: '200', headers: new Headers() },
    ].map((one): [unknown, RegExp] => [one, /^a value that is no Response from POST http:\S+\/v1\/pets$/]),
    [{ status: 200, headers: {} }, /^a value that is no Response/],
    [{ status: 200, headers: new Headers(), body: 'x' }, /^a value that is no Response/],
    [{ status: 0, headers: new Headers(), body: null, type: 'opaqueredirect' }, /^a redirect from POST/],
    [Response.error(), /^a value that is no Response/],
    [{ status: 200, headers: new Map([['a', 'b']]) }, /^200 with an empty body from POST/],
    [{ status: 200, headers: new Headers(), body: bodyOf('text') }, /not made of bytes/],
    [{ status: 200, headers: new Headers(), body: bodyOf(null) }, /not made of bytes/],
  ];
  for (const [what, says] of given) {
    const { client } = await harness(t, () => made, { fetch: (() => what) as never });
    const error = await failure(client.createPet(newPet));
    assert.deepEqual([error.code, error.tries, error.outcomeUnknown], ['bad_reply', 1, true], error.message);
    assert.match(error.message, says);
  }
  const told = Object.assign(new Error('x'), { code: Symbol('c'), message: Symbol('m') });
  for (const thrown of [undefined, null, 'x', Symbol('x'), Object.create(null), {}, told]) {
    const { client } = await harness(t, () => made, { fetch: () => Promise.reject(thrown) });
    const error = await failure(client.createPet(newPet, { retries: 0 }));
    assert.deepEqual([error.code, error.outcomeUnknown], ['network', true], error.message);
  }
});

test('a stream of the caller’s is let go of when its try is over', async (t) => {
  let cancelled = 0;
  const body = () => new ReadableStream({ cancel: () => void cancelled++ });
  const { client } = await harness(t, () => made, { fetch: async () => new Response(body()) });
  await failure(client.getPet(1, { timeoutMs: 20, retries: 1 }));
  assert.equal(cancelled, 2);
  const odd = { status: 200, headers: new Headers(), body: { getReader: () => ({ read: never }) } };
  const { client: other } = await harness(t, () => made, { fetch: async () => odd as never });
  assert.equal((await failure(other.getPet(1, { timeoutMs: 20, retries: 0 }))).code, 'timeout');
});

test('a list is asked for as it was told when it was made, whatever becomes of the options', async (t) => {
  const { client, front } = await harness(t, () => json([]));
  const options: { status: 'sold' | 'pending' } = { status: 'sold' };
  const listing = client.listPets(options);
  options.status = 'pending';
  await all(listing);
  assert.equal(front.asked[0].path, '/v1/pets?limit=100&status=sold');
});

test('what a hook or fetch does to the headers of one try is gone at the next', async (t) => {
  const keys: (string | undefined)[] = [];
  const own: Fetch = (url, init) => {
    keys.push(init.headers['idempotency-key']);
    init.headers['idempotency-key'] = 'mine';
    return fetch(url, init);
  };
  const { client } = await harness(t, inTurn(refusal(503, 'unavailable'), made), { fetch: own });
  await client.createPet(newPet, { idempotencyKey: 'k' });
  assert.deepEqual(keys, ['k', 'k']);
});

test('a member that an animal has not goes to the service, which refuses it by name', async (t) => {
  const { client, front } = await harness(t, () => made);
  await client.createPet({ stauts: 'sold', ...newPet } as never);
  assert.deepEqual(JSON.parse(front.asked[0].body), { ...newPet, stauts: 'sold' });
});

test('headers may be an object or Headers; the client’s own are refused by name', async (t) => {
  const { client, front } = await harness(t, () => json(REX), {
    headers: new Headers({ 'X-Shop': 'a', 'X-Two': '2' }),
  });
  await client.getPet(1, { headers: new Headers([['x-shop', 'b']]) });
  await client.getPet(1, { headers: { 'X-Shop': undefined } as never });
  const sent = front.asked.map(({ headers }) => `${headers['x-shop']} ${headers['x-two']}`);
  assert.deepEqual(sent, ['b 2', 'a 2']);
  for (const name of ['Authorization', 'If-None-Match', 'If-Match', 'Idempotency-Key', 'Content-Type', 'accept']) {
    for (const headers of [{ [name]: 'x' }, new Headers({ [name]: 'x' })]) {
      const { code, message } = await failure(client.getPet(1, { headers }));
      assert.equal(code, 'invalid_argument');
      assert.match(message.toLowerCase(), new RegExp(`headers: ${name} is set by the client`, 'i'));
      const options = { baseUrl: 'http://x', key: KEY, headers };
      assert.throws(() => new PetstoreClient(options), { name: 'RangeError', message });
    }
  }
  assert.equal(front.asked.length, 2);
});

test('an idempotency key is made also where there is no crypto.randomUUID: on a page without TLS', async (t) => {
  t.mock.method(crypto, 'randomUUID', () => assert.fail('not there'));
  const { client, front } = await harness(t, () => made);
  for (const _ of [1, 2]) await client.createPet(newPet);
  const [first, second] = front.asked.map(({ headers }) => headers['idempotency-key']);
  assert.notEqual(first, second);
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
  const headers = { 'User-Agent': 'shop/1', 'X-Shop': 'a' };
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
  assert.equal(await listing.page(first.response.etag), undefined);
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
  const rude = {
    toString() {
      throw new Error('rude');
    },
  };
  const wrong: [call: () => Promise<unknown>, says: RegExp][] = [
    ...[undefined, null, 'Rex', 7].map((pet): (typeof wrong)[0] => [
      () => odd.createPet(pet),
      new RegExp(`^pet must be an object \\(got ${pet}\\)$`),
    ]),
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
    ...[Symbol('x'), Object.create(null), rude, null, Number.NaN].flatMap((value): typeof wrong =>
      ['budgetMs', 'timeoutMs', 'retries', 'idempotencyKey'].map((name) => [
        () => odd.createPet(newPet, { [name]: value }),
        new RegExp(`^${name} must be`),
      ]),
    ),
    ...[Symbol('x'), null, 'ab', 7].map((headers): (typeof wrong)[0] => [
      () => odd.getPet(1, { headers }),
      /^headers must be an object/,
    ]),
    [() => odd.getPet(1, { headers: { a: Symbol('x') } }), /^headers: a must be text/],
    [() => odd.createPet(newPet, Symbol('x')), /options must be an object/],
    [() => odd.createPet(newPet, { idempotencyKey: '' }), /^idempotencyKey must be text/],
    [() => odd.createPet(newPet, { idempotencyKey: 'é' }), /^idempotencyKey must be text/],
    [() => odd.updateOrder(1, 'delivered', { ifMatch: null }), /^ifMatch must be text/],
    [() => odd.updateOrder(1, 'delivered', { ifMatch: '' }), /^ifMatch must be text/],
    [() => client.listPets().page(''), /^etag must be text/],
    [() => client.listPets().page(null as never), /^etag must be text/],
    [() => all(client.listPets({ limit: 101 })), /^limit must be a whole number from 1 to 100/],
    [() => all(client.listPets({ status: null } as never)), /^status must be text/],
    [() => all(client.listPets({ after: '' })), /^after: must be an int64/],
    [() => odd.getPet(1, { timing: {} }), /unknown option timing/],
    [() => odd.getPet(1, { signal: 0 }), /signal must be/],
    [() => odd.getPet([5]), /^id: must be an int64/],
    [() => odd.getPet({ toString: () => '5' }), /^id: must be an int64/],
    [() => odd.getPet(Object.create(null)), /^id: must be an int64/],
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
  refuse({ ...good, key: [KEY] }, /key must be (?!.*got)/);
  refuse({ ...good, baseUrl: Object.create(null) }, /baseUrl must be/);
  refuse({ ...good, baseUrl: 'http://:word@x' }, /baseUrl must be/);
  refuse({ ...good, budgetMs: Symbol('x') }, /budgetMs must be .*Symbol/);
  refuse({ ...good, headers: 'ab' }, /headers must be/);
});

/** A process of its own: it must end by itself, long before a budget or a wait would be over. */
async function endsAtOnce(script: string): Promise<void> {
  const source = `
    import { createServer } from 'node:http';
    import { PetstoreClient } from './src/client/client.ts';
    const wait = (ms) => new Promise((go) => setTimeout(go, ms));
    const said = (call) => call.then(() => 'done', (error) => error.code);
    const server = createServer((req, res) => {
      if (req.url.endsWith('/9')) return;
      if (req.method === 'GET') return res.end('{"id":1}');
      res.writeHead(429, { 'Retry-After': '60', 'X-Request-Id': 'r' }).end('{"code":"rate_limited","message":"m"}');
    }).listen(0, async () => {
      const store = new PetstoreClient({ baseUrl: 'http://127.0.0.1:' + server.address().port, key: '${KEY}' });
      ${script}
      server.close();
      server.closeAllConnections();
      console.log('over');
    });`;
  const cwd = fileURLToPath(new URL('../..', import.meta.url));
  const words = ['--import', 'tsx', '--input-type=module', '--eval', source];
  const { stdout } = await promisify(execFile)(process.execPath, words, { cwd, timeout: 50_000 });
  assert.equal(stdout, 'over\n');
}

const rex = "{ name: 'Rex', categoryId: 1 }";
const LEFT: Record<string, string> = {
  'calls that went well, were refused, or ran out of time': `
    await store.getPet(1, { signal: null });
    await said(store.getPet(1, { signal: {} }));
    await said(store.getPet(9, { signal: AbortSignal.timeout(50) }));
    await said(store.createPet({ name: 'Rex', categoryId: 1.5 }));`,
  'a call that is aborted while a refusal holds it': `
    if ((await said(store.createPet(${rex}, { signal: AbortSignal.timeout(300) }))) !== 'aborted') throw 1;`,
  'calls that are ended by close while a refusal holds them': `
    const calls = [1, 2, 3].map(() => said(store.createPet(${rex})));
    await wait(300);
    await store.close();
    if (String(await Promise.all(calls)) !== 'closed,closed,closed') throw 1;`,
  'a call whose budget is over while a refusal holds it': `
    const first = said(store.createPet(${rex}, { signal: AbortSignal.timeout(400) }));
    await wait(200);
    await said(store.getPet(1, { budgetMs: 50 }));
    await first;`,
};

for (const [name, script] of Object.entries(LEFT)) {
  test(`nothing is left behind that holds the process: ${name}`, () => endsAtOnce(script));
}
