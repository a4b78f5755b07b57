/** The runner of these tests: a run of no test is not green, and each failure names its test. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { command, temporary } from './program.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const { NODE_TEST_CONTEXT: _, ...env } = process.env; // else node:test would take the run for a part of this one

function run(cwd: string, ...words: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [path.join(ROOT, 'test/run.mjs'), ...words], {
    cwd,
    env,
    encoding: 'utf8',
  });
  return { status, told: stdout + stderr };
}

test('it runs the folder that is named, and tells each file; what is no test, no file or no option is refused', async (t) => {
  const dir = await temporary(t);
  const folder = path.join(dir, 'inner');
  await mkdir(folder);
  await writeFile(path.join(dir, 'one.test.ts'), "import { test } from 'node:test';\ntest('goes', () => {});\n");
  await writeFile(path.join(dir, 'two.slow.test.ts'), "throw new Error('not of this kind');\n");
  await writeFile(path.join(dir, 'none.ts'), 'export const none: number = 0;\n');
  const green = run(ROOT, dir);
  assert.equal(green.status, 0, green.told);
  assert.match(green.told, /^Running 1 file .*\n\[1\/1\] \S+one\.test\.ts: [\d.]+ s\n1 passed, 0 failed\n/);
  for (const [word, why, status] of [
    [folder, 'inner holds no file *.test.ts', 2],
    [path.join(dir, 'gone.test.ts'), 'there is no file or folder', 2],
    ['--fast', 'there is no option --fast', 2],
    [path.join(dir, 'none.ts'), 'none.ts: there is no test in it\n0 passed, 1 failed', 1],
  ] as const) {
    const { status: exit, told } = run(ROOT, word);
    assert.ok(exit === status && told.includes(why), `${word}: ${exit}\n${told}`);
  }
});

test('each failure names its file, and its test, whatever was thrown', async (t) => {
  const dir = await temporary(t);
  // The last three, or the cause of one, have no text form.
  const thrown = [
    'new Error("boom")',
    'Object.create(null)',
    'Object.assign(new Error(), { cause: { toString: 1 } })',
    'null',
  ];
  const files = {
    'json/bad': thrown.map((value, at) => `test('number ${at}', () => { throw ${value}; });`).join('\n'),
    'json/good': "test('goes', () => {});",
    'http/good': "test('goes', () => {});",
    'http/none': '',
  };
  for (const [name, text] of Object.entries(files)) {
    const file = path.join(dir, 'test', `${name}.test.ts`);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, `import { test } from 'node:test';\n${text}\n`);
  }
  const { status, told } = run(dir, 'test');
  assert.equal(status, 1);
  for (const at of thrown.keys())
    assert.match(told, new RegExp(`^FAILED test/json/bad\\.test\\.ts: number ${at}$`, 'm'));
  assert.match(told, /: number 0\n.*boom/);
  assert.match(told, /^\[\d\/4\] test\/json\/bad\.test\.ts: FAILED/m);
  assert.match(told, /^FAILED test\/http\/none\.test\.ts: there is no test in it$/m);
  const names = [...thrown.keys()].map((at) => `test/json/bad.test.ts: number ${at}`);
  const last = [...names, 'test/http/none.test.ts: there is no test in it'].map((name) => `failed: ${name}\n`).join('');
  assert.ok(told.includes('2 passed, 5 failed') && told.endsWith(last), told);
});

test('an older Node is told in one sentence: by `npm start`, by `npm test`, and by the bundled program', async () => {
  const old = 'data:text/javascript,Object.defineProperty(process, "versions", { value: { node: "18.20.8" } })';
  const { scripts } = JSON.parse(await readFile(path.join(ROOT, 'package.json'), 'utf8'));
  const start = scripts.start.replace(/^node /, '').split(' ');
  const [, bundle] = await command();
  for (const words of [start, ['test/run.mjs'], [bundle, 'version']]) {
    const { status, stdout, stderr } = spawnSync(process.execPath, ['--import', old, ...words], {
      cwd: ROOT,
      env,
      encoding: 'utf8',
      timeout: 120_000, // else the service would run
    });
    const said = 'petstore needs Node 20.19 or newer; this is Node 18.20.8.\n';
    assert.deepEqual([status, stdout, stderr], [1, '', said], words.join(' '));
  }
});
