/** How the console and the document are sent: compressed to whoever takes that, under ETags, so many a minute an address. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { PAGES_PER_MINUTE } from '../../src/access/addresses.ts';
import { inBothForms } from '../../src/http/encoding.ts';
import { serving, standingStillUntil, temporary } from '../program.ts';
import { assertCommon, assertError } from '../raw.ts';

const page = inBothForms('text/plain', 'some text');
const prefersGzip = (accept?: string) => page(accept).headers.includes('gzip');

test('gzip is sent to who would rather have it than the bytes as they are: quality values, names of any case, *', () => {
  for (const accept of [
    ...['gzip', 'GZIP', 'x-gzip', 'gzip, deflate, br, zstd', ' gzip ; q=0.1 ', 'br;q=1.0, gzip;q=0.8, *;q=0.1', '*'],
    ...[
      '*;q=0.5',
      'gzip;q=0.5, identity;q=0.5',
      'identity;q=0, *',
      'gzip;q=1.000,identity',
      'deflate, , gzip',
      'gzip;Q=1',
    ],
  ]) {
    assert.equal(prefersGzip(accept), true, accept);
  }
  for (const accept of [
    ...[undefined, '', 'identity', 'br', 'gzip;q=0', 'gzip;q=0.000', 'gzip;q=0, *', '*;q=0', 'gzip;q=0.5, identity'],
    ...['gzip;q=0.5, identity;q=0.6', 'gzip;q=2', 'gzip;q=abc', 'gzip;level=9', 'gzipped', 'not gzip', 'gzip;q=0.1234'],
  ]) {
    assert.equal(prefersGzip(accept), false, accept);
  }
});

/** `fetch` would uncompress what comes. */
async function ask(url: URL, method: string, headers: Record<string, string>) {
  const req = request(url, { method, headers, agent: false }).end();
  const [res]: IncomingMessage[] = await once(req, 'response');
  const told = new Map(Object.entries(res.headers as Record<string, string>));
  return { status: res.statusCode, headers: told, body: await buffer(res) };
}

test('page and document: both forms are the same text, each with an ETag that spares its body, and Vary', async (t) => {
  const { url } = await serving(t, ['--data', await temporary(t)]);
  for (const path of ['/', '/openapi.json']) {
    const get = (headers: Record<string, string> = {}, method = 'GET') => ask(new URL(path, url), method, headers);
    const plain = await get();
    const packed = await get({ 'Accept-Encoding': 'gzip, br' });
    assert.deepEqual(
      [plain.headers.get('content-encoding'), packed.headers.get('content-encoding')],
      [undefined, 'gzip'],
    );
    assert.ok(gunzipSync(packed.body).equals(plain.body), 'the same text');
    assert.ok(packed.body.length < plain.body.length / 3, `${packed.body.length} of ${plain.body.length}`);
    const tags = [plain, packed].map(({ headers }) => headers.get('etag') ?? '');
    assert.notEqual(tags[0], tags[1], 'other bytes');
    for (const [reply, accept, etag] of [
      [plain, 'identity', tags[0]],
      [packed, 'gzip', tags[1]],
    ] as const) {
      assertCommon(reply.headers, true);
      assert.equal(reply.headers.get('vary'), 'Accept-Encoding');
      assert.equal(Number(reply.headers.get('content-length')), reply.body.length);
      const again = await get({ 'Accept-Encoding': accept, 'If-None-Match': `W/"other", ${etag}` });
      assert.deepEqual([again.status, again.body.length, again.headers.get('etag')], [304, 0, etag]);
      assert.equal(again.headers.get('vary'), 'Accept-Encoding');
      assert.equal((await get({ 'Accept-Encoding': accept, 'If-None-Match': '"other"' })).status, 200);
      const head = await get({ 'Accept-Encoding': accept }, 'HEAD');
      assert.deepEqual([head.body.length, head.headers.get('etag')], [0, etag]);
      assert.equal(head.headers.get('content-length'), reply.headers.get('content-length'));
    }
  }
});

test('an address that asks for pages without end is told to wait; others, and the checks of a balancer, are not', async (t) => {
  const dir = await temporary(t);
  // 300 pages and those behind them come within one minute, however long a busy machine takes for them.
  const env = standingStillUntil(join(dir, 'never'));
  const { url } = await serving(t, ['--data', join(dir, 'data'), '--trust-proxy', '1'], { env });
  const get = async (path: string, address: string, method = 'GET') => {
    const reply = await fetch(new URL(path, url), { method, headers: { 'X-Forwarded-For': address } });
    return { status: reply.status, headers: reply.headers, body: await reply.text() };
  };
  for (let i = 0; i < PAGES_PER_MINUTE; i++) {
    assert.equal((await get(i % 2 === 0 ? '/' : '/openapi.json', '192.0.2.1')).status, 200);
  }
  const refused = await get('/', '192.0.2.1');
  assert.match(assertError(refused, 429, 'rate_limited'), /^the limit of 300 pages a minute for an address is used up/);
  assert.equal(refused.headers.get('retry-after'), '61');
  assert.equal(refused.headers.get('ratelimit-policy'), `"pages";q=${PAGES_PER_MINUTE};w=60`);
  assert.deepEqual([(await get('/healthz', '192.0.2.1')).status, (await get('/', '192.0.2.2')).status], [200, 200]);
  assert.equal((await get('/v1/pets', '192.0.2.1')).status, 401, 'that is counted apart');
  const withoutPage = ['OPTIONS', 'HEAD', 'POST'].map(async (method) => (await get('/', '192.0.2.1', method)).status);
  assert.deepEqual(await Promise.all(withoutPage), [204, 200, 405], 'only what sends a page is counted');
});
