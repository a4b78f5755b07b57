/** The program with `--lab`: what survives a kill -9, and how `petstore grade` ends. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { program, temporary } from '../program.ts';
import { serveLab } from './clients.ts';

test('what the lab did survives a kill -9: an advance, with the day and the age of idempotency records; a reset', async (t) => {
  const data = await temporary(t);
  const tom = { name: 'Tom', categoryId: 1 };
  const first = await serveLab(t, data);
  const { key } = first;
  assert.equal((await first.ask('POST /v1/pets', tom)).json.id, 31);
  for (let n = 0; n < 3; n++) await first.ask('GET /v1/pets');
  assert.deepEqual((await first.ask('POST /lab/clock', { advance: '24h' })).json, { ahead: 86_400 });
  await first.kill();

  const second = await serveLab(t, data, key);
  const advanced = await second.ask('GET /v1/pets?after=30');
  assert.deepEqual([advanced.headers.get('x-lab-clock'), advanced.json.length], ['+86400', 1]);
  assert.match(advanced.headers.get('ratelimit')!, /"day";r=99999;/);
  assert.equal((await second.ask('POST /v1/pets', tom)).json.id, 32, 'not replayed: its record is too old');
  assert.equal((await second.ask('POST /lab/reset')).status, 204);
  await second.kill();

  const third = await serveLab(t, data, key);
  const { headers, json } = await third.ask('GET /v1/pets?after=29');
  assert.deepEqual([json.length, json[0].id], [1, 30]);
  assert.equal(headers.get('x-lab-clock'), null);
  assert.match(headers.get('ratelimit')!, /"minute";r=999;t=60, "day";r=99999;/);
  assert.equal((await third.ask('POST /v1/pets', tom)).json.id, 31);
});

test('petstore grade: exit 0 for one that is good enough, 1 for a lower one and for none', async (t) => {
  const dir = await temporary(t);
  const { ask, stop } = await serveLab(t, join(dir, 'data'));
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
