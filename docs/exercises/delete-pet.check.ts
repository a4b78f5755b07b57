/**
 * `node --import tsx --test docs/exercises/delete-pet.check.ts`, once you have done what docs/exercises/delete-pet.md asks.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { openapiDocument } from '../../src/web/openapi.ts';
import { startService, type TestService } from '../../test/service.ts';

describe('delete-pet', () => {
  const dir = mkdtempSync(join(tmpdir(), 'petstore-delete-'));
  let service: TestService;
  let key: string;

  before(async () => {
    service = await startService({ dir });
    key = (await service.makeKey()).text;
  });
  after(async () => {
    await service?.close();
    rmSync(dir, { recursive: true });
  });

  async function ask(method: string, path: string, body?: object, headers: Record<string, string> = {}) {
    const type = body && { 'content-type': 'application/json' };
    const init = { method, key, body: body && JSON.stringify(body), headers: { ...type, ...headers } };
    const reply = await service.fetch(`/v1${path}`, init);
    const text = await reply.text();
    return { status: reply.status, headers: reply.headers, json: text === '' ? undefined : JSON.parse(text) };
  }
  const create = (headers = {}) => ask('POST', '/pets', { name: 'Rex', categoryId: 3 }, headers);
  const once = { 'idempotency-key': 'rex' };

  it('removes an available animal: 204 without a body, and nobody finds it any more', async () => {
    const first = await create(once);
    await create();
    assert.equal(first.json.id, 1);
    const removed = await ask('DELETE', '/pets/1');
    assert.deepEqual([removed.status, removed.json], [204, undefined]);
    assert.equal((await ask('GET', '/pets/1')).status, 404);
    for (const path of ['/pets', '/pets?status=available', '/pets?limit=1']) {
      assert.deepEqual(
        (await ask('GET', path)).json.map(({ id }: { id: number }) => id),
        [2],
        path,
      );
    }
    assert.equal((await ask('POST', '/store/orders', { petId: 1 })).status, 400);
    for (const id of ['1', '99', '0', 'x']) assert.equal((await ask('DELETE', `/pets/${id}`)).status, 404, id);
  });

  it('refuses one that is ordered or sold', async () => {
    await ask('POST', '/store/orders', { petId: 2 });
    for (const status of ['pending', 'sold']) {
      const refused = await ask('DELETE', '/pets/2');
      assert.deepEqual([refused.status, refused.json.code], [409, 'pet_unavailable'], status);
      await ask('PATCH', '/store/orders/1', { status: 'delivered' });
    }
  });

  it('gives no id again, and the first reply again, after a restart too', async () => {
    await create();
    assert.equal((await ask('DELETE', '/pets/3')).status, 204);
    for (let start = 0; start < 2; start++) {
      assert.equal((await create()).json.id, 4 + start);
      const again = await create(once);
      assert.deepEqual(again.json, { id: 1, name: 'Rex', categoryId: 3, status: 'available' });
      assert.deepEqual([again.status, again.headers.get('idempotent-replayed')], [201, 'true']);
      service.store.read.check();
      await service.close();
      service = await startService({ dir });
    }
    assert.equal((await ask('GET', '/pets/3')).status, 404);
    assert.equal(service.store.read.counts().pets, 3);
  });

  it('is told: in Allow, and in the document', async () => {
    assert.equal((await ask('OPTIONS', '/pets/1')).headers.get('allow'), 'GET, HEAD, DELETE, OPTIONS');
    const url = 'http://x/v1';
    const { paths } = openapiDocument({ baseUrl: url, stagingBaseUrl: url }) as { paths: Record<string, object> };
    assert.ok('delete' in paths['/pets/{petId}']);
  });
});
