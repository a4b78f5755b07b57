/** The program with `--lab`: what survives a kill -9, and how `petstore grade` ends. */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { program, serving, temporary } from '../program.ts';

/** `ask`: with the first key that there was. */
async function start(t: TestContext, data: string, seed?: string, first?: string) {
  const words = ['--lab', '--environment', 'staging', '--first-key', 'pro', '--data', data];
  const server = await serving(t, seed === undefined ? words : [...words, '--seed', seed]);
  const key = first ?? server.key;
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'idempotency-key': 'a' };
  const ask = async (what: string, body?: object) => {
    const [method, path] = what.split(' ');
    const reply = await fetch(new URL(path, server.url), { method, headers, body: body && JSON.stringify(body) });
    const text = await reply.text();
    return { status: reply.status, headers: reply.headers, json: text === '' ? undefined : JSON.parse(text) };
  };
  return { ...server, key, ask };
}

test('what the lab did survives a kill -9: an advance, with the day and the age of idempotency records; a reset', async (t) => {
  const dir = await temporary(t);
  const [data, seed] = [join(dir, 'data'), join(dir, 'seed.json')];
  await writeFile(seed, '{"categories":[{"id":1,"name":"dogs"}],"pets":[{"name":"Rex","categoryId":1}]}');
  const tom = { name: 'Tom', categoryId: 1 };
  const first = await start(t, data, seed);
  const { key } = first;
  assert.equal((await first.ask('POST /v1/pets', tom)).json.id, 2);
  for (let n = 0; n < 3; n++) await first.ask('GET /v1/pets');
  assert.deepEqual((await first.ask('POST /lab/clock', { advance: '24h' })).json, { ahead: 86_400 });
  await first.kill();

  const second = await start(t, data, seed, key);
  const advanced = await second.ask('GET /v1/pets');
  assert.deepEqual([advanced.headers.get('x-lab-clock'), advanced.json.length], ['+86400', 2]);
  assert.match(advanced.headers.get('ratelimit')!, /"day";r=9999;/);
  assert.equal((await second.ask('POST /v1/pets', tom)).json.id, 3, 'not replayed: its record is too old');
  assert.equal((await second.ask('POST /lab/reset')).status, 204);
  await second.kill();

  const third = await start(t, data, undefined, key);
  const { headers, json } = await third.ask('GET /v1/pets');
  assert.deepEqual(json, [{ id: 1, name: 'Rex', categoryId: 1, status: 'available' }]);
  assert.equal(headers.get('x-lab-clock'), null);
  assert.match(headers.get('ratelimit')!, /"minute";r=299;t=60, "day";r=9999;/);
  assert.equal((await third.ask('POST /v1/pets', tom)).json.id, 2);
});

test('petstore grade: exit 0 for one that is good enough, 1 for a lower one and for none', async (t) => {
  const dir = await temporary(t);
  const { ask, stop } = await start(t, join(dir, 'data'));
  const grade = (id: string, ...words: string[]) => program(['grade', id, '--data', join(dir, 'data'), ...words]);
  const none = await grade('k1', '--json');
  assert.deepEqual([none.exit, /no grade yet/.test(none.stderr)], [1, true]);
  const { grade: letter, score, seen, checks } = JSON.parse(none.stdout);
  assert.deepEqual([letter, score, seen, checks.length], [null, 0, 0, 10]);
  assert.match((await grade('k9')).stderr, /no key k9/);

  // A POST whose reply is lost is sent again under the same key, a 503 is waited for: that is 60 % of the weight, all good.
  const create = () => ask('POST /v1/pets', { name: 'Rex', categoryId: 1 });
  await ask('POST /lab/faults', { kind: 'drop_after' });
  await assert.rejects(create());
  await create();
  await ask('POST /lab/faults', { kind: 'unavailable' });
  assert.equal((await create()).status, 503);
  await ask('POST /lab/clock', { advance: '2s' });
  for (const limit of [2, 3]) await ask(`GET /v1/pets?limit=${limit}`);
  const file = join(dir, 'grade.xml');
  const good = await grade('k1', '--at-least', 'A', '--junit', file);
  assert.equal(good.exit, 0, good.stdout + good.stderr);
  assert.match(good.stdout, /^grade +A\n/);
  assert.match(await readFile(file, 'utf8'), /name="grade"><\/testcase>/);

  await ask('POST /lab/faults', { kind: 'unavailable', seconds: 60 });
  await ask('GET /v1/pets?limit=4');
  await ask('POST /lab/clock', { advance: '2s' });
  await ask('GET /v1/pets?limit=5');
  const bad = await grade('k1', '--at-least', 'C', '--junit', file);
  assert.deepEqual([bad.exit, /not C/.test(bad.stderr)], [1, true], bad.stderr);
  assert.match(bad.stdout, /^grade +D\n/);
  assert.match(await readFile(file, 'utf8'), /name="grade"><failure /);
  await stop();
  const alone = await grade('k1');
  assert.deepEqual([alone.exit, /--lab/.test(alone.stderr)], [1, true], alone.stderr);
});
