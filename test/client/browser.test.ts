/** The client on a page of another origin, in a real browser, where neither TLS nor Node is. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import test from 'node:test';
import { build } from 'esbuild';
import { chromium } from 'playwright-core';
import { serving, temporary } from '../program.ts';
import { ARGS, CHROMIUM, skip } from '../web/browser.ts';

const USES = `async ([baseUrl, key]) => {
  const store = new petstore.PetstoreClient({ baseUrl, key });
  const made = await store.createPet({ name: 'Rex', categoryId: 9007199254740993n }).withResponse();
  await store.createPet({ name: 'Rex', categoryId: 1 }, { idempotencyKey: 'k' });
  const pages = [];
  for await (const { items } of store.listPets({ limit: 1 }).pages()) pages.push(items.length);
  const { code, requestId, outcomeUnknown } = await store.updateOrder(99, 'delivered').catch((error) => error);
  const { etag } = await store.putCategory(1, 'Dogs').withResponse();
  const late = await store.putCategory(1, 'Cats', { ifMatch: '"other"' }).catch((error) => error.code);
  return {
    isSecureContext, made: [made.data.categoryId, made.isNew, made.requestId !== undefined, made.limits !== undefined],
    pages: pages.length, refused: [code, requestId !== undefined, outcomeUnknown], late, hasTag: etag !== undefined,
  };
}`;

test('on a page that came without TLS all works, and all that a reply says can be read', { skip }, async (t) => {
  const site = createServer((_, res) =>
    res.setHeader('Content-Type', 'text/html').end('<!doctype html><title>A page</title>'),
  );
  await once(site.listen(0, '127.0.0.1'), 'listening');
  t.after(() => site.close());
  const origin = `http://shop.test:${(site.address() as AddressInfo).port}`;
  const options = ['--data', await temporary(t), '--first-key', 'free', '--cors-origin', origin];
  const { url, key } = await serving(t, options);
  const { outputFiles } = await build({
    ...{ entryPoints: ['src/client/client.ts'], absWorkingDir: new URL('../..', import.meta.url).pathname },
    ...{ bundle: true, write: false, format: 'iife', globalName: 'petstore', platform: 'browser' },
  });
  const browser = await chromium.launch({
    ...(CHROMIUM !== undefined && { executablePath: CHROMIUM }),
    args: [...ARGS, '--host-resolver-rules=MAP shop.test 127.0.0.1'],
  });
  t.after(() => browser.close());
  const page = await browser.newPage();
  await page.goto(origin);
  await page.addScriptTag({ content: outputFiles[0].text });
  assert.deepEqual(await page.evaluate(`(${USES})(${JSON.stringify([url, key])})`), {
    isSecureContext: false,
    made: ['9007199254740993', true, true, true],
    pages: 2,
    refused: ['not_found', true, false],
    late: 'precondition_failed',
    hasTag: true,
  });
});
