/** What a caller may bring: options of the client and of one call, fetch, headers, a hook; and what ends a call. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import test, { type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type Fetch, PetstoreClient } from '../client.ts';
import {
  all,
  created,
  failure,
  harness,
  inTurn,
  json,
  KEY,
  never,
  newPet,
  REX,
  refusal,
  retryAfter,
  until,
} from './proxy.ts';

test('an address or key of the wrong form is refused at once, and the key is not shown', async (t) => {
  for (const baseUrl of ['ftp://x/v1', 'http://u@x/v1', 'http://x/v1?a', 'http://x/v1#a', 'v1', undefined]) {
    assert.throws(() => new PetstoreClient({ baseUrl: baseUrl as string, key: KEY }), /baseUrl must be/, baseUrl);
  }
  for (const key of ['', 'secret', KEY.slice(1), `${KEY} `, undefined]) {
    const isPlain = ({ name, message }: Error) =>
      name === 'TypeError' && message.startsWith('key must') && !message.includes(key || 'none');
    assert.throws(() => new PetstoreClient({ baseUrl: 'http://x', key: key as string }), isPlain, key);
  }
  for (const path of ['', '/', '/v1', '/v1/', '/shop', '/shop/v1']) {
    const { client, proxy } = await harness(t, () => json([]), { path });
    await all(client.listPets());
    assert.equal(proxy.received[0].path, `${path.startsWith('/shop') ? '/shop' : ''}/v1/pets?limit=100`, path);
  }
});

test('each call may have options of its own; the client’s hold for the others', async (t) => {
  const headers = { 'User-Agent': 'shop/1', 'X-Shop': 'a' };
  const { client, proxy } = await harness(t, () => refusal(503, 'unavailable'), { retries: 1, headers });
  assert.equal((await failure(client.getPet(1))).tries, 2);
  const own = new Headers({ 'X-Shop': 'b' });
  assert.equal((await failure(client.getPet(1, { retries: 3, headers: own }))).tries, 4);
  assert.equal((await failure(client.getPet(1, { retries: undefined }))).tries, 2);
  const sent = proxy.received.map(({ headers: had }) => `${had['user-agent']} ${had['x-shop']} ${had.authorization}`);
  assert.deepEqual([...new Set(sent)], [`shop/1 a Bearer ${KEY}`, `shop/1 b Bearer ${KEY}`]);
  const plain = await harness(t, () => created);
  await plain.client.createPet(newPet, { signal: null });
  assert.equal(plain.proxy.received[0].headers['user-agent'], 'petstore-client/source');
});

test('a fetch of the caller’s is used as it is; what it does to the headers of one try is gone at the next', async (t) => {
  const seen: string[] = [];
  const own: Fetch = (url, init) => {
    seen.push(`${init.method} ${url} ${init.headers['idempotency-key']}`);
    init.headers['idempotency-key'] = 'other';
    return fetch(url, init);
  };
  const { client, proxy } = await harness(t, inTurn(refusal(503, 'unavailable'), created), { fetch: own });
  await client.createPet(newPet, { idempotencyKey: 'k' });
  const expected = `POST ${proxy.url}/v1/pets k`;
  assert.deepEqual(seen, [expected, expected]);
  for (const odd of [undefined, null, {}, Response.error(), { status: 200, headers: new Map(), body: 'x' }]) {
    const { client } = await harness(t, () => created, { fetch: (async () => odd) as never });
    const error = await failure(client.createPet(newPet, { retries: 0 }));
    assert.deepEqual([/^(network|bad_reply)$/.test(error.code), error.outcomeUnknown], [true, true], error.message);
  }
});

test('an error in a log has its message and what is known, and neither key nor cause', async (t) => {
  const { client } = await harness(t, () => refusal(404, 'not_found'));
  const error = await failure(client.getPet(1));
  const { tries, outcomeUnknown, status, requestId, name } = error;
  const facts = { name, code: 'not_found', message: 'because of not_found', status, requestId, tries, outcomeUnknown };
  assert.deepEqual(JSON.parse(JSON.stringify(error)), facts);
});

test('a signal ends a call that has no connection yet, the budget one whose reply drips', async (t) => {
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
  const { client } = await harness(t, never, { baseUrl: `http://${address}`, budgetMs: 1_200 });
  const error = await failure(client.createPet(newPet));
  assert.deepEqual([error.code, error.status, error.tries, error.outcomeUnknown], ['timeout', 200, 1, true]);
  assert.match(error.message, /within 1200 ms/);
});

test('a signal, or close, ends what is under way, what waits, and what comes after', async (t) => {
  /** The client's own way of waiting, but of no length: it ends by the signal alone. */
  const sleep = (_: number, signal: AbortSignal) => once(signal, 'abort');
  for (const code of ['aborted', 'closed']) {
    const stop = new AbortController();
    let isOver = false;
    const fault = ({ method }: { method: string }) =>
      method === 'POST' ? refusal(503, 'unavailable') : isOver ? json(REX) : never();
    const { client, proxy } = await harness(t, fault, { sleep });
    const { signal } = stop;
    // It keeps one of the four places.
    const waiting = failure(client.createPet(newPet, { signal }));
    await until(() => proxy.received.length === 1);
    const inFlight = [1, 2, 3].map((id) => failure(client.putCategory(id, 'Dogs', { signal })));
    await until(() => proxy.received.length === 4);
    const queued = failure(client.putCategory(5, 'Cats', { signal }));
    const next = code === 'aborted' ? client.getPet(1) : undefined;
    isOver = true;
    if (code === 'closed') await client.close();
    else stop.abort(new Error('enough', { cause: { code: 'ECONNREFUSED' } })); // which is not the connection's
    const errors = await Promise.all([waiting, ...inFlight, queued, failure(client.createPet(newPet, { signal }))]);
    const facts = errors.map((error) => `${error.code} ${error.status} ${error.tries} ${error.outcomeUnknown}`);
    const expected = ['503 1 false', '0 1 true', '0 1 true', '0 1 true', '0 0 false', '0 0 false'];
    assert.deepEqual(
      facts,
      expected.map((rest) => `${code} ${rest}`),
    );
    assert.equal(errors[1].cause, signal.reason);
    assert.deepEqual(await next, next && REX, 'the next call goes in place of one that gave up');
    assert.equal(proxy.received.length, next ? 5 : 4);
    await client.close();
  }
});

function warningsOfNode(t: TestContext): Error[] {
  const warnings: Error[] = [];
  const note = (warning: Error) => warnings.push(warning);
  process.on('warning', note);
  t.after(() => process.off('warning', note));
  return warnings;
}

test('one signal ends any number of calls, and Node warns of none', async (t) => {
  const warnings = warningsOfNode(t);
  const { client, proxy } = await harness(t, () => never());
  const stop = new AbortController();
  const calls = Array.from({ length: 20 }, () => failure(client.getOrder(1, { signal: stop.signal })));
  await until(() => proxy.received.length === 4);
  stop.abort();
  assert.deepEqual(new Set((await Promise.all(calls)).map(({ code }) => code)), new Set(['aborted']));
  await new Promise(setImmediate);
  assert.deepEqual(warnings, []);
});

test('a call may wait any number of times, and Node warns of none', async (t) => {
  const warnings = warningsOfNode(t);
  const { proxy } = await harness(t, inTurn(refusal(503, 'unavailable', retryAfter(1)), created));
  const { setTimeout: wait } = globalThis;
  t.mock.method(globalThis, 'setTimeout', (run: () => void, ms = 0) => wait(run, ms < 5_000 ? ms / 20 : ms));
  const client = new PetstoreClient({ baseUrl: proxy.url, key: KEY }); // in real time, where each timer is early
  t.after(() => client.close());
  assert.deepEqual(await client.createPet(newPet), REX);
  assert.deepEqual(warnings, []);
});

/** A process of its own: it must end by itself, long before a budget or a wait would be over. */
test('nothing is left behind that keeps the process running', async () => {
  const source = `
    import { createServer } from 'node:http';
    import { PetstoreClient } from './extras/client/client.ts';
    const codeOf = (call) => call.then(() => 'done', (error) => error.code);
    const server = createServer((req, res) => {
      if (req.method === 'GET') return res.end('{"id":1}');
      res.writeHead(429, { 'Retry-After': '60', 'X-Request-Id': 'r' }).end('{"code":"rate_limited","message":"m"}');
    }).listen(0, async () => {
      const store = new PetstoreClient({ baseUrl: 'http://127.0.0.1:' + server.address().port, key: '${KEY}' });
      const signal = AbortSignal.timeout(300);
      const codes = [await codeOf(store.getPet(1)), await codeOf(store.createPet({ name: 'Rex', categoryId: 1 }, { signal }))];
      server.close();
      server.closeAllConnections();
      console.log(codes.join(' '));
    });`;
  const cwd = fileURLToPath(new URL('../../..', import.meta.url));
  const words = ['--import', 'tsx', '--input-type=module', '--eval', source];
  const { stdout } = await promisify(execFile)(process.execPath, words, { cwd, timeout: 50_000 });
  assert.equal(stdout, 'done aborted\n');
});
