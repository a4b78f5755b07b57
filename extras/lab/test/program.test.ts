/** `petstore lab`, `petstore grade`, and what survives a kill -9. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { command, PATIENT, program, standingStillUntil, temporary, without } from '../../program.ts';
import { serveLab } from './clients.ts';

test('petstore lab prints the key, its id, the console and three lines that lead to a grade', async (t) => {
  const [file, ...words] = await command();
  const child = spawn(file, [...words, 'lab', '--port', '0'], { stdio: ['ignore', 'pipe', 'ignore'] });
  t.after(() => child.kill('SIGKILL'));
  let stdout = '';
  while (!/ grade k1 --data \S+\n/.test(stdout)) stdout += String((await once(child.stdout, 'data'))[0]);
  const lines = stdout.trimEnd().split('\n');
  assert.match(lines[0], /^petstore listening on http:\/\/127\.0\.0\.1:\d+\/v1$/);
  if (!without('console')) assert.match(lines.splice(1, 1)[0], /^The console: http:\/\/127\.0\.0\.1:\d+\/#lab$/);
  assert.equal(lines[1], 'The key k1:');
  assert.match(lines[2], /^ps_test_\w{36}$/);
  assert.match(lines[3], /^Type next/);
  const [exported, drill, grade] = lines.slice(4);
  const env = { ...process.env, ...PATIENT };
  const typed = spawnSync('sh', ['-c', [exported, drill, grade].join('\n')], { env, encoding: 'utf8' });
  assert.match(typed.stdout, /^\{"script":\[\{"step":1,.*\}\ngrade +none\n/s, typed.stderr);
  assert.deepEqual([typed.status, /no grade yet/.test(typed.stderr)], [5, true], typed.stderr);
  const data = /--data (\S+)/.exec(grade)![1];
  assert.ok(existsSync(data));
  child.kill('SIGTERM');
  assert.deepEqual(await once(child, 'exit'), [0, null]);
  assert.equal(existsSync(data), false, 'its directory goes with it');
});

test('an advance and a reset survive a kill -9', async (t) => {
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
  assert.deepEqual([advanced.headers.get('x-lab-clock'), advanced.json.length], [null, 1]);
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
  assert.deepEqual([letter, score, seen, checks.length], [null, 0, 0, 9]);
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

test('petstore grade waits for a POST that may still come again', async (t) => {
  const dir = await temporary(t);
  const [data, clockRuns] = [join(dir, 'data'), join(dir, 'clock-runs')];
  const { ask } = await serveLab(t, data, undefined, { env: standingStillUntil(clockRuns) });
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
  await writeFile(clockRuns, ''); // from now on time passes
  const [exit] = await ended;
  assert.match(stderr, /^a POST that failed may come again within [1-5] s: waiting for that\n/);
  assert.deepEqual([exit, /^grade +F\n/.test(stdout)], [1, true], stdout + stderr);
  assert.match(stdout, /finished +15 +fail +1 /);
});
