/** The drill of docs/operating.md: serve, fill, back up under load, kill, restore elsewhere, compare. */
import assert from 'node:assert/strict';
import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { program, serving, temporary } from '../program.ts';

interface Told {
  pets: number;
  orders: number;
  categories: number;
  keys: number;
  digest: string;
}

test('the drill: a backup under load, a kill, a restore elsewhere, equal digests', async (t) => {
  const cwd = await temporary(t);
  const run = async (line: string) => {
    const ran = await program(line.split(' '), { cwd });
    assert.equal(ran.exit, 0, `${line}: ${ran.stderr}`);
    return ran.stdout;
  };
  const told = async (line: string): Promise<Told> => {
    const { pets, orders, categories, keys, digest } = JSON.parse(await run(`${line} --json`));
    return { pets, orders, categories, keys, digest };
  };
  const server = await serving(t, [], { cwd });
  const words = 'keys create --plan enterprise --per-minute 1000000 --per-day 1000000 --json';
  const { key } = JSON.parse(await run(words));
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const post = (what: string, body: object) =>
    fetch(`${server.url}/${what}`, { method: 'POST', headers, body: JSON.stringify(body) });
  await fetch(`${server.url}/categories/7`, { method: 'PUT', headers, body: '{"name":"Seven"}' });

  let done = false;
  const acknowledged: number[] = [];
  const load = Array.from({ length: 8 }, async () => {
    while (!done) {
      const reply = await post('pets', { name: 'under load', categoryId: 7 });
      assert.equal(reply.status, 201);
      const { id } = (await reply.json()) as { id: number };
      acknowledged.push(id);
      if (id % 10 === 0) assert.equal((await post('store/orders', { petId: id })).status, 201);
    }
  });
  const before = acknowledged.length;
  const backed = await told('backup store.backup');
  const verified = await told('verify');
  await run('compact');
  const second = await told('backup second.backup');
  done = true;
  await Promise.all(load);
  assert.ok(backed.pets > before && second.pets > verified.pets && verified.pets > backed.pets);
  assert.ok(second.orders > 0);
  assert.equal((await stat(path.join(cwd, 'store.backup'))).mode & 0o777, 0o600);
  assert.deepEqual((await program(['backup', 'store.backup'], { cwd })).exit, 1, 'a backup overwrites nothing');
  await server.kill();

  for (const [file, expected] of [
    ['store.backup', backed],
    ['second.backup', second],
  ] as const) {
    const data = `restored-${file}`;
    assert.deepEqual(await told(`restore ${file} --data ${data}`), expected);
    assert.deepEqual(await told(`verify --data ${data}`), expected);
    const next = await serving(t, ['--data', data], { cwd });
    const reply = await fetch(`${next.url}/pets?limit=1`, { headers });
    assert.deepEqual([reply.status, (await reply.text()).includes('"id":1,')], [200, true], 'keys come with it');
    assert.equal((await next.stop()).exit, 0);
  }
  const refused = await program(['restore', 'store.backup'], { cwd });
  assert.equal(refused.exit, 1);
  assert.match(refused.stderr, /is not empty/);
  assert.equal(Math.max(...acknowledged), (await told('verify')).pets, 'the kill lost nothing that was acknowledged');
});

test('a backup that was changed is refused as damaged, and leaves no store behind', async (t) => {
  const cwd = await temporary(t);
  await writeFile(path.join(cwd, 'in'), '{"name":"Rex","categoryId":1}\n');
  await program(['import', 'in'], { cwd });
  await program(['backup', 'b'], { cwd });
  const text = await readFile(path.join(cwd, 'b'), 'utf8');
  for (const bad of [text.replace('Rex', 'Max'), text.slice(0, -20), text.split('\n').slice(0, -2).join('\n')]) {
    await writeFile(path.join(cwd, 'bad'), bad);
    const { exit, stderr } = await program(['restore', 'bad', '--data', 'new'], { cwd });
    assert.equal(exit, 3, stderr);
    assert.ok(!(await readdir(cwd)).includes('new'));
  }
  assert.equal((await program(['restore', 'none', '--data', 'new'], { cwd })).exit, 1);
});
