/** The client on a page of another origin, in a real browser, where neither TLS nor Node is. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { build } from 'esbuild';
import { without } from '../../program.ts';
import { skip, stage } from './browser.ts';

const ORIGIN = 'http://shop.test';
const live = stage('--cors-origin', ORIGIN);

const USES = `async ([baseUrl, key]) => {
  const store = new petstore.PetstoreClient({ baseUrl, key });
  const made = await store.createPet({ name: 'Rex', categoryId: 9007199254740993n }).withResponse();
  await store.createPet({ name: 'Rex', categoryId: 1 }, { idempotencyKey: 'k' });
  const pages = [];
  for await (const { items } of store.listPets({ limit: 1, after: 30 }).pages()) pages.push(items.length);
  const { code, requestId, outcomeUnknown } = await store.updateOrder(99, 'delivered').catch((error) => error);
  const { etag } = await store.putCategory(1, 'Dogs').withResponse();
  const late = await store.putCategory(1, 'Cats', { ifMatch: '"other"' }).catch((error) => error.code);
  return {
    isSecureContext, made: [made.data.categoryId, made.isNew, made.requestId !== undefined, made.limits !== undefined],
    pages: pages.length, refused: [code, requestId !== undefined, outcomeUnknown], late, hasTag: etag !== undefined,
  };
}`;

it('the client: on a page that came without TLS all works, and all that a reply says can be read', {
  skip: skip || without('client'),
}, async () => {
  const { page } = await live.open();
  await page.route(`${ORIGIN}/`, (route) => route.fulfill({ contentType: 'text/html', body: '<!doctype html>' }));
  await page.goto(ORIGIN);
  const { outputFiles } = await build({
    ...{ entryPoints: ['extras/client/client.ts'], absWorkingDir: new URL('../../..', import.meta.url).pathname },
    ...{ bundle: true, write: false, format: 'iife', globalName: 'petstore', platform: 'browser' },
  });
  await page.addScriptTag({ content: outputFiles[0].text });
  assert.deepEqual(await page.evaluate(`(${USES})(${JSON.stringify([`${live.origin}/v1`, live.key])})`), {
    isSecureContext: false,
    made: ['9007199254740993', true, true, true],
    pages: 2,
    refused: ['not_found', true, false],
    late: 'precondition_failed',
    hasTag: true,
  });
});
