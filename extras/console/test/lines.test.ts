/** The console's page as it is served, and its line among those that a server prints. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { checkPage } from '../../../test/raw.ts';
import { serving, temporary } from '../../program.ts';

test('a server prints where its console is, at an address that works, above the key', async (t) => {
  const dir = await temporary(t);
  for (const [host, name] of [
    ['0.0.0.0', '127.0.0.1'],
    ['::1', '[::1]'],
  ]) {
    const { url, stdout } = await serving(t, ['--host', host, '--data', join(dir, name), '--first-key', 'free']);
    const { origin, hostname } = new URL(url);
    assert.equal(hostname, name);
    assert.deepEqual(stdout().split('\n').slice(1, 3), [
      `The console: ${origin}/`,
      'The key k1, which is shown only once:',
    ]);
  }
});

test('with --no-console there is none, and no line of it; the document stays', async (t) => {
  const dir = await temporary(t);
  const { url, stdout } = await serving(t, ['--no-console', '--data', join(dir, 'data')]);
  assert.equal(stdout(), `petstore listening on ${url}\n`);
  const status = async (page: string) => (await fetch(new URL(page, url))).status;
  assert.deepEqual([await status('/'), await status('/openapi.json'), await status('/healthz')], [404, 200, 200]);
});

test('the page is served to whoever has no key, and names neither a path of the server nor a command', async (t) => {
  const data = await temporary(t);
  const { url } = await serving(t, ['--data', data]);
  await checkPage(new URL('/', url), 'text/html; charset=utf-8', '<!doctype html>');
  const text = await (await fetch(new URL('/', url))).text();
  assert.ok(!text.includes(data) && !text.includes(process.argv[0]));
  assert.equal(
    /petstore \w+ |keys (?:create|lift)|\.cjs|\{\{/.exec(text.replaceAll('petstore console', ''))?.[0],
    undefined,
  );
});
