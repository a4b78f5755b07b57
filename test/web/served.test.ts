/** How the console and the document are sent: as they are, and under an ETag. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serving, temporary } from '../program.ts';
import { assertCommon } from '../raw.ts';

test('page and document have an ETag that spares their body, and are for whoever has no key', async (t) => {
  const { url } = await serving(t, ['--data', await temporary(t)]);
  for (const [path, type, begin] of [
    ['/', 'text/html; charset=utf-8', '<!doctype html>'],
    ['/openapi.json', 'application/json; charset=utf-8', '{"openapi":"3.1.0"'],
  ]) {
    const get = (headers = {}, method = 'GET') => fetch(new URL(path, url), { method, headers });
    const reply = await get();
    const body = await reply.text();
    assert.equal(reply.status, 200);
    assertCommon(new Map(reply.headers), true);
    assert.equal(reply.headers.get('content-type'), type);
    assert.equal(Number(reply.headers.get('content-length')), Buffer.byteLength(body));
    assert.ok(body.startsWith(begin), body.slice(0, 40));
    const etag = reply.headers.get('etag') ?? '';
    const unchanged = await get({ 'If-None-Match': `W/"other", ${etag}` });
    assert.deepEqual([unchanged.status, await unchanged.text(), unchanged.headers.get('etag')], [304, '', etag]);
    assert.equal((await get({ 'If-None-Match': '"other"' })).status, 200);
    const head = await get({}, 'HEAD');
    assert.deepEqual([head.status, head.headers.get('etag')], [200, etag]);
  }
});
