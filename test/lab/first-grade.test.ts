/** `petstore lab`: from its start to a grade by what it prints, and nothing stays behind. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { command, PATIENT, program, serving, temporary } from '../program.ts';

test('petstore lab prints the key, its id, the console and three lines that lead to a grade', async (t) => {
  const [file, ...words] = await command();
  const child = spawn(file, [...words, 'lab', '--port', '0'], { stdio: ['ignore', 'pipe', 'ignore'] });
  t.after(() => child.kill('SIGKILL'));
  let stdout = '';
  while (!/ grade k1 --data \S+\n/.test(stdout)) stdout += String((await once(child.stdout, 'data'))[0]);
  const lines = stdout.trimEnd().split('\n');
  assert.match(lines[0], /^petstore listening on http:\/\/127\.0\.0\.1:\d+\/v1$/);
  assert.match(lines[1], /^The console: http:\/\/127\.0\.0\.1:\d+\/#lab$/);
  assert.equal(lines[2], 'The key k1:');
  assert.match(lines[3], /^ps_test_\w{36}$/);
  assert.match(lines[4], /^Type next/);
  const [exported, drill, grade] = lines.slice(5);
  const env = { ...process.env, ...PATIENT };
  const typed = spawnSync('sh', ['-c', [exported, `${drill} -s`, grade].join('\n')], { env, encoding: 'utf8' });
  assert.match(typed.stdout, /^\{"script":\[\{"step":1,.*grade +none\n/s, typed.stderr);
  assert.deepEqual([typed.status, /no grade yet/.test(typed.stderr)], [5, true], typed.stderr);
  const data = /--data (\S+)/.exec(grade)![1];
  assert.ok(existsSync(data));
  child.kill('SIGTERM');
  assert.deepEqual(await once(child, 'exit'), [0, null]);
  assert.equal(existsSync(data), false, 'its directory goes with it');
});

test('petstore lab takes no options of serve', async () => {
  const { exit, stderr } = await program(['lab', '--data', 'x']);
  assert.deepEqual([exit, /--data/.test(stderr)], [2, true], stderr);
});

test('--seed demo is the built-in example', async (t) => {
  const data = await temporary(t);
  const { url, key } = await serving(t, ['--seed', 'demo', '--first-key', 'free', '--data', data]);
  const reply = await fetch(`${url}/pets?limit=100`, { headers: { authorization: `Bearer ${key}` } });
  const pets = (await reply.json()) as { name: string }[];
  assert.deepEqual([pets.length, pets[0].name], [30, 'Bello']);
});
