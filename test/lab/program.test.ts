/** The program with `--lab`: what survives a kill -9, and how `petstore grade` ends. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { workplace } from '../operator/workplace.ts';
import { command, PATIENT, program, standingStillUntil, temporary } from '../program.ts';
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

test('petstore grade: exit 0 for one that is good enough, 1 for a lower one, 5 for none yet', async (t) => {
  const dir = await temporary(t);
  const { ask, stop } = await serveLab(t, join(dir, 'data'));
  const grade = (id: string, ...words: string[]) => program(['grade', id, '--data', join(dir, 'data'), ...words]);
  const none = await grade('k1', '--json');
  assert.deepEqual(
    [none.exit, /no grade yet.* Missing: retry_after \(20\): /.test(none.stderr)],
    [5, true],
    none.stderr,
  );
  const { grade: letter, score, seen, next, checks } = JSON.parse(none.stdout);
  assert.deepEqual([letter, score, seen, checks.length], [null, 0, 0, 11]);
  assert.match(next, /^retry_after .*follow the Links/);
  assert.deepEqual([(await grade('k9')).exit, /no key k9/.test((await grade('k9')).stderr)], [1, true]);

  // A POST whose reply is lost is sent again under the same key, a 503 is waited for: that is enough weight, all good.
  const create = () => ask('POST /v1/pets', { name: 'Rex', categoryId: 1 });
  await ask('POST /lab/faults', { kind: 'drop_after' });
  await assert.rejects(create());
  await create();
  await ask('POST /lab/faults', { kind: 'unavailable' });
  assert.equal((await create()).status, 503);
  await ask('POST /lab/clock', { advance: '2s' });
  await create();
  for (const limit of [2, 3]) await ask(`GET /v1/pets?limit=${limit}`);
  const good = await grade('k1', '--at-least', 'A');
  assert.equal(good.exit, 0, good.stdout + good.stderr);
  assert.match(good.stdout, /^grade +A\n[\s\S]*\n\nNot seen yet: backoff \(10\): /);

  await ask('POST /lab/faults', { kind: 'unavailable', seconds: 60 });
  await ask('GET /v1/pets?limit=4');
  await ask('POST /lab/clock', { advance: '2s' });
  await ask('GET /v1/pets?limit=5');
  const bad = await grade('k1', '--at-least', 'C');
  assert.deepEqual([bad.exit, /the grade is D, not C/.test(bad.stderr)], [1, true], bad.stderr);
  assert.match(bad.stdout, /^grade +D\n/);
  await stop();
  const alone = await grade('k1');
  assert.deepEqual([alone.exit, /--lab/.test(alone.stderr)], [1, true], alone.stderr);
});

test('petstore grade waits for a POST that may still come again: it has a grade though its client sends nothing more', async (t) => {
  const dir = await temporary(t);
  const [data, told] = [join(dir, 'data'), join(dir, 'told')];
  const { ask } = await serveLab(t, data, undefined, { env: standingStillUntil(told) });
  await ask('POST /lab/faults', { kind: 'drop_before' });
  await assert.rejects(ask('POST /v1/pets', { name: 'Rex', categoryId: 1 }));
  assert.match(
    (await ask('GET /lab/grade')).json.next,
    /^a POST that failed may still come again: .* in [345] s; retry_after/,
  );
  const [file, ...words] = await command();
  const env = { ...process.env, ...PATIENT };
  const grading = spawn(file, [...words, 'grade', 'k1', '--data', data, '--at-least', 'D'], { env });
  let [stdout, stderr] = ['', ''];
  grading.stdout.on('data', (bytes) => (stdout += bytes));
  grading.stderr.on('data', (bytes) => (stderr += bytes));
  const ended = once(grading, 'close');
  while (grading.exitCode === null && !stderr.includes('\n')) await wait(10);
  await writeFile(told, ''); // from now on time passes
  const [exit] = await ended;
  assert.match(stderr, /^waiting [1-5] s: a POST that failed may still come again\n/);
  assert.deepEqual([exit, /^grade +F\n/.test(stdout)], [1, true], stdout + stderr);
  assert.match(stdout, /finished +15 +fail +1 /);
});

test('petstore grade waits for no POST that was told to wait longer than two minutes, and says so', async (t) => {
  const data = await temporary(t);
  const { ask } = await serveLab(t, data);
  await ask('POST /lab/faults', { kind: 'unavailable', seconds: 600 });
  assert.equal((await ask('POST /v1/pets', { name: 'Rex', categoryId: 1 })).status, 503);
  const { exit, stderr } = await program(['grade', 'k1', '--data', data]);
  assert.match(stderr, /^a POST that failed may still come again within \d{3} s: this grade does not wait for it\n/);
  assert.equal(exit, 5);
});

test('the seed of a lab is read once, so that it may be a pipe', async (t) => {
  const { serve } = await workplace(t);
  const seed = '{"pets":[{"name":"Rex","categoryId":1}]}';
  const before = ['bash', '-c', `exec "$@" < <(echo '${seed}')`, 'bash'];
  const lab = '--lab --environment staging --first-key business';
  const server = await serve(`${lab} --seed /dev/stdin`, { before });
  const headers = { authorization: `Bearer ${server.key}` };
  const list = async () => JSON.parse(await (await fetch(`${server.url}/pets`, { headers })).text()).length;
  assert.equal(await list(), 1);
  const reset = await fetch(new URL('/lab/reset', server.url), { method: 'POST', headers });
  assert.deepEqual([reset.status, await list()], [204, 1]);
});
