/** The drill of docs/operating.md: serve, fill, back up under load, kill, restore elsewhere, compare. */
import assert from 'node:assert/strict';
import { stat } from 'node:fs/promises';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { workplace } from './workplace.ts';

test('the drill: a backup under load, a kill, a restore elsewhere, equal digests', async (t) => {
  const { at, json, done, serve, headers: headersOf } = await workplace(t);
  const told = async (line: string) => {
    const { pets, orders, categories, keys, digest } = await json<Record<string, number>>(line);
    return { pets, orders, categories, keys, digest };
  };
  const server = await serve();
  const headers = await headersOf();
  const post = (what: string, body: object) =>
    fetch(`${server.url}/${what}`, { method: 'POST', headers, body: JSON.stringify(body) });
  await fetch(`${server.url}/categories/7`, { method: 'PUT', headers, body: '{"name":"Seven"}' });

  let isOver = false;
  let last = 0;
  const load = Array.from({ length: 8 }, async () => {
    while (!isOver) {
      const reply = await post('pets', { name: 'under load', categoryId: 7 });
      assert.equal(reply.status, 201);
      const { id } = (await reply.json()) as { id: number };
      last = Math.max(last, id);
      if (id % 10 === 0) assert.equal((await post('store/orders', { petId: id })).status, 201);
    }
  });
  /** The load goes on: nothing else tells that anything was written between two commands. */
  const more = async () => {
    const enough = last + 20;
    while (last < enough) await Promise.race([wait(5), ...load]);
  };
  await more();
  const first = await told('backup first.backup');
  await more();
  const verified = await told('verify');
  await done('compact');
  await more();
  const second = await told('backup second.backup');
  isOver = true;
  await Promise.all(load);
  assert.ok(second.pets > verified.pets && verified.pets > first.pets && first.pets > 0 && second.orders > 0);
  assert.equal((await stat(at('first.backup'))).mode & 0o777, 0o600);
  await server.kill();

  for (const [name, expected] of Object.entries({ first, second })) {
    assert.deepEqual(await told(`restore ${name}.backup --data ${name}`), expected);
    assert.deepEqual(await told(`verify --data ${name}`), expected);
    const next = await serve(`--data ${name}`);
    const reply = await fetch(`${next.url}/pets?limit=1`, { headers });
    assert.deepEqual([reply.status, (await reply.text()).includes('"id":1,')], [200, true], 'keys come with it');
    assert.equal((await next.stop()).exit, 0);
  }
  assert.equal((await told('verify')).pets, last, 'the kill lost nothing that was acknowledged');
});
