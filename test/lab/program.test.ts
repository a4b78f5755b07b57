/** The program with `--lab`: what survives a kill -9, and how `petstore grade` ends. */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { program, serving, temporary } from '../program.ts';

const LAB = ['--lab', '--environment', 'staging', '--first-key', 'pro'];

async function start(t: TestContext, dir: string, ...more: string[]) {
  const server = await serving(t, [...LAB, '--data', dir, ...more]);
  const origin = server.url.slice(0, -'/v1'.length);
  const ask = async (key: string, what: string, body?: object) => {
    const [method, path] = what.split(' ');
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'idempotency-key': 'a' };
    const reply = await fetch(origin + path, { method, headers, body: body && JSON.stringify(body) });
    const text = await reply.text();
    return { status: reply.status, headers: reply.headers, json: text === '' ? undefined : JSON.parse(text) };
  };
  return { ...server, ask };
}

test('--lab needs --environment staging', async () => {
  for (const more of [[], ['--environment', 'production']]) {
    const { exit, stderr } = await program(['serve', '--lab', ...more]);
    assert.equal(exit, 2);
    assert.match(stderr, /--lab needs --environment staging/);
  }
});

test('what the lab did survives a kill -9: an advance, with the day and the age of idempotency records; a reset', async (t) => {
  const dir = await temporary(t);
  const seed = join(dir, 'seed.json');
  await writeFile(seed, '{"categories":[{"id":1,"name":"dogs"}],"pets":[{"name":"Rex","categoryId":1}]}');
  const data = join(dir, 'data');
  const tom = { name: 'Tom', categoryId: 1 };
  const first = await start(t, data, '--seed', seed);
  const { key } = first;
  assert.equal((await first.ask(key, 'POST /v1/pets', tom)).json.id, 2);
  for (let n = 0; n < 3; n++) await first.ask(key, 'GET /v1/pets');
  assert.deepEqual((await first.ask(key, 'POST /lab/clock', { advance: '24h' })).json, { ahead: 86_400 });
  await first.kill();

  const second = await start(t, data, '--seed', seed);
  const advanced = await second.ask(key, 'GET /v1/pets');
  assert.deepEqual([advanced.headers.get('x-lab-clock'), advanced.json.length], ['+86400', 2]);
  assert.match(advanced.headers.get('ratelimit')!, /"day";r=9999;/);
  assert.equal((await second.ask(key, 'POST /v1/pets', tom)).json.id, 3, 'not replayed: its record is too old');
  assert.equal((await second.ask(key, 'POST /lab/reset')).status, 204);
  await second.kill();

  const third = await start(t, data);
  const { headers, json } = await third.ask(key, 'GET /v1/pets');
  assert.deepEqual(json, [{ id: 1, name: 'Rex', categoryId: 1, status: 'available' }]);
  assert.equal(headers.get('x-lab-clock'), null);
  assert.match(headers.get('ratelimit')!, /"minute";r=299;t=60, "day";r=9999;/);
  assert.equal((await third.ask(key, 'POST /v1/pets', tom)).json.id, 2);
});

test('petstore grade: exit 0 for one that is good enough, 1 for a lower one and for none', async (t) => {
  const dir = await temporary(t);
  const data = join(dir, 'data');
  const server = await start(t, data);
  const grade = (...words: string[]) => program(['grade', 'k1', '--data', data, ...words]);
  const none = await grade('--json');
  assert.equal(none.exit, 1);
  assert.match(none.stderr, /no grade yet/);
  const { grade: letter, score, seen, checks } = JSON.parse(none.stdout);
  assert.deepEqual([letter, score, seen, checks.length], [null, 0, 0, 10]);
  assert.equal((await program(['grade', 'k9', '--data', data])).stderr.includes('no key k9'), true);

  // A POST whose reply is lost is sent again under the same key, a 503 is waited for: that is 60 % of the weight, all good.
  await server.ask(server.key, 'POST /lab/faults', { kind: 'drop_after' });
  const create = () => server.ask(server.key, 'POST /v1/pets', { name: 'Rex', categoryId: 1 });
  await assert.rejects(create());
  await create();
  await server.ask(server.key, 'POST /lab/faults', { kind: 'unavailable' });
  assert.equal((await create()).status, 503);
  await server.ask(server.key, 'POST /lab/clock', { advance: '2s' });
  await server.ask(server.key, 'GET /v1/pets?limit=2');
  await server.ask(server.key, 'GET /v1/pets?limit=3');
  const file = join(dir, 'grade.xml');
  const good = await grade('--at-least', 'A', '--junit', file);
  assert.equal(good.exit, 0, good.stdout + good.stderr);
  assert.match(good.stdout, /^grade +A\n/);
  assert.match(await readFile(file, 'utf8'), /name="grade"><\/testcase>/);

  await server.ask(server.key, 'POST /lab/faults', { kind: 'unavailable', seconds: 60 });
  await server.ask(server.key, 'GET /v1/pets?limit=4');
  await server.ask(server.key, 'POST /lab/clock', { advance: '2s' });
  await server.ask(server.key, 'GET /v1/pets?limit=5');
  const bad = await grade('--at-least', 'C', '--junit', file);
  assert.equal(bad.exit, 1);
  assert.match(bad.stdout, /^grade +D\n/);
  assert.match(bad.stderr, /not C/);
  assert.match(await readFile(file, 'utf8'), /name="grade"><failure /);
  assert.equal((await grade('--at-least', 'D')).exit, 0);
  assert.equal((await grade('--at-least', 'E')).exit, 2);
  await server.stop();
  const alone = await grade();
  assert.equal(alone.exit, 1);
  assert.match(alone.stderr, /--lab/);
});
