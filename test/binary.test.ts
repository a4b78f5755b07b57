/** The single file: nothing beside it, nothing in the environment, another user, no Node on the machine's path. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const BUILT = fileURLToPath(new URL('../dist/petstore', import.meta.url));
const NOBODY = 65_534;
const START_MAX_MS = 120_000;
const skip = existsSync(BUILT) ? false : 'there is no dist/petstore; npm run build makes it';

const home = mkdtempSync(path.join(tmpdir(), 'petstore-binary-'));
after(() => rmSync(home, { recursive: true, force: true }));
const program = path.join(home, 'bin', 'petstore');
const isRoot = process.getuid?.() === 0;
const setpriv = ['setpriv', `--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups'];

if (!skip) {
  mkdirSync(path.dirname(program));
  chmodSync(home, 0o755);
  copyFileSync(BUILT, program);
}

/** Whoever runs the test as root runs the program as nobody. */
const command = (args: string[]): [string, string[]] => {
  const [file, ...words] = isRoot ? [...setpriv, program, ...args] : [program, ...args];
  return [file, words];
};

function emptyDirectory(name: string): string {
  const dir = path.join(home, name);
  mkdirSync(dir);
  if (isRoot) chownSync(dir, NOBODY, NOBODY);
  return dir;
}

function run(cwd: string, ...args: string[]) {
  const [file, words] = command(args);
  const { status, stdout, stderr } = spawnSync(file, words, { cwd, env: {}, encoding: 'utf8', timeout: START_MAX_MS });
  return { status, stdout, stderr };
}

async function serve(cwd: string, ...args: string[]): Promise<{ child: ChildProcess; url: string; key: string }> {
  const [file, words] = command(['serve', '--port', '0', ...args]);
  const child = spawn(file, words, { cwd, env: {}, stdio: ['ignore', 'pipe', 'ignore'] });
  after(() => child.kill('SIGKILL'));
  const [text] = await once(child.stdout!, 'data', { signal: AbortSignal.timeout(START_MAX_MS) });
  const [line, key] = String(text).split('\n');
  assert.match(line, /^petstore listening on http:/);
  return { child, url: line.split(' ').at(-1)!, key };
}

test('the binary serves, makes keys, compacts, backs up and shows the console, with nothing but itself', {
  skip,
}, async () => {
  const cwd = emptyDirectory('alone');
  const { child, url, key } = await serve(cwd, '--first-key', 'pro');
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const made = await fetch(`${url}/pets`, { method: 'POST', headers, body: '{"name":"Rex","categoryId":1}' });
  assert.equal(made.status, 201);
  const root = new URL('/', url);
  const page = await (await fetch(root)).text();
  assert.match(page, /<script[^>]*>[\s\S]{1000,}<\/script>/, 'the console is whole: its script is in it');
  assert.equal((await fetch(new URL('/openapi.json', root))).status, 200);

  assert.match(run(cwd, 'keys', 'create', '--plan', 'free').stdout, /\nps_live_[0-9A-Za-z]{36}\n$/);
  assert.equal(run(cwd, 'serve', '--port', '0').status, 4);
  const compacted = run(cwd, 'compact');
  assert.equal(compacted.status, 0, compacted.stderr);
  assert.ok(readdirSync(path.join(cwd, 'data')).includes('store-000002.jsonl'), 'the child of the binary wrote it');
  assert.equal(run(cwd, 'backup', 'b').status, 0);
  child.kill('SIGTERM');
  assert.deepEqual(await once(child, 'exit'), [0, null]);
  assert.match(run(cwd, 'restore', 'b', '--data', 'other').stdout, /^pets +1$/m);
  assert.equal(
    run(cwd, 'export', '--data', 'other').stdout,
    '{"id":1,"name":"Rex","categoryId":1,"status":"available"}\n',
  );
});

test('the binary tells its version, the commit it was built from and the Node it carries', { skip }, () => {
  const { version, commit, runtime } = JSON.parse(run(home, 'version', '--json').stdout);
  assert.match(version, /^\d+\.\d+\.\d+$/);
  assert.match(commit, /^(?:[0-9a-f]{12}( with changes)?|unknown)$/);
  assert.match(runtime, /^Node v26\./);
});

test('the drill of docs/operating.md, with the binary', { skip }, () => {
  const drill = fileURLToPath(new URL('operator/drill.test.ts', import.meta.url));
  const args = [
    ...process.execArgv.filter((word) => !word.startsWith('--test')),
    '--test',
    '--test-reporter=tap',
    drill,
  ];
  const env = { ...process.env, PETSTORE_TEST_PROGRAM: BUILT, NODE_TEST_CONTEXT: undefined };
  const { status, stdout } = spawnSync(process.execPath, args, { env, encoding: 'utf8' });
  assert.equal(status, 0, stdout);
  assert.match(stdout, /# pass [1-9]/);
});
