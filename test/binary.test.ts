/** The single file: nothing beside it, nothing in the environment, another user, no Node on the machine's path. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, copyFileSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { temporary } from './program.ts';

const BUILT = fileURLToPath(new URL('../dist/petstore', import.meta.url));
const NOBODY = 65_534;
const START_MAX_MS = 120_000;
const skip = existsSync(BUILT) ? false : 'there is no dist/petstore; npm run build makes it';

test('the binary serves, compacts, backs up and shows the console, with nothing but itself', { skip }, async (t) => {
  const home = await temporary(t);
  chmodSync(home, 0o755);
  const [program, cwd] = [path.join(home, 'petstore'), path.join(home, 'alone')];
  copyFileSync(BUILT, program);
  mkdirSync(cwd);
  // Whoever runs the test as root runs the program as nobody.
  const isRoot = process.getuid?.() === 0;
  const setpriv = ['setpriv', `--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups'];
  const [file, ...words] = isRoot ? [...setpriv, program] : [program];
  if (isRoot) chownSync(cwd, NOBODY, NOBODY);
  const run = (line: string) => {
    const options = { cwd, env: {}, encoding: 'utf8', timeout: START_MAX_MS } as const;
    const { status, stdout, stderr } = spawnSync(file, [...words, ...line.split(' ')], options);
    return { status, stdout, stderr };
  };

  const { version, commit, runtime } = JSON.parse(run('version --json').stdout);
  assert.match(version, /^\d+\.\d+\.\d+$/);
  assert.match(commit, /^(?:[0-9a-f]{12}( with changes)?|unknown)$/, 'the commit it was built from');
  assert.match(runtime, /^Node v26\./, 'the Node it carries');

  const serve = [...words, 'serve', '--port', '0', '--first-key', 'pro'];
  const child = spawn(file, serve, { cwd, env: {}, stdio: ['ignore', 'pipe', 'ignore'] });
  t.after(() => child.kill('SIGKILL'));
  const [text] = await once(child.stdout, 'data', { signal: AbortSignal.timeout(START_MAX_MS) });
  const [, url, key] = /^petstore listening on (http:\S+)\n(ps_\w+)\n/.exec(String(text))!;
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const made = await fetch(`${url}/pets`, { method: 'POST', headers, body: '{"name":"Rex","categoryId":1}' });
  assert.equal(made.status, 201);
  const page = await (await fetch(new URL('/', url))).text();
  assert.match(page, /<script[^>]*>[\s\S]{1000,}<\/script>/, 'the console is whole: its script is in it');
  assert.equal((await fetch(new URL('/openapi.json', url))).status, 200);

  assert.match(run('keys create --plan free').stdout, /\nps_live_[0-9A-Za-z]{36}\n$/);
  assert.equal(run('serve --port 0').status, 4);
  const compacted = run('compact');
  assert.equal(compacted.status, 0, compacted.stderr);
  assert.ok(readdirSync(path.join(cwd, 'data')).includes('store-000002.jsonl'), 'the child of the binary wrote it');
  assert.equal(run('backup b').status, 0);
  child.kill('SIGTERM');
  assert.deepEqual(await once(child, 'exit'), [0, null]);
  assert.match(run('restore b --data other').stdout, /^pets +1$/m);
  assert.equal(run('export --data other').stdout, '{"id":1,"name":"Rex","categoryId":1,"status":"available"}\n');
});

test('the drill of docs/operating.md, with the binary', { skip }, () => {
  const drill = fileURLToPath(new URL('operator/drill.test.ts', import.meta.url));
  const words = process.execArgv.filter((word) => !word.startsWith('--test'));
  const env = { ...process.env, PETSTORE_TEST_PROGRAM: BUILT, NODE_TEST_CONTEXT: undefined };
  const args = [...words, '--test', '--test-reporter=tap', drill];
  const { status, stdout } = spawnSync(process.execPath, args, { env, encoding: 'utf8' });
  assert.equal(status, 0, stdout);
  assert.match(stdout, /# pass [1-9]/);
});
