/** Each extra goes with its folder and its line of the list, and all of them do: what is left goes on, and is green. */
import assert from 'node:assert/strict';
import { execFile, execFileSync, spawn } from 'node:child_process';
import {
  appendFileSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { temporary } from './program.ts';

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL('..', import.meta.url));
const { NODE_TEST_CONTEXT: _, TEST_BUNDLES: __, TEST_PROGRAM: ___, ...env } = process.env; // of this run of tests
const EXTRAS = readdirSync(path.join(ROOT, 'extras'), { withFileTypes: true })
  .filter((one) => one.isDirectory())
  .map(({ name }) => name);

/**
 * Tests that can see which extras are there: they name the folder, or run the program with all extras. The others import
 * files of `src/` or of their own extra, and typecheck finds whether these are there.
 */
function testsThatSee(cwd: string): string[] {
  const isSeen = (file: string) => {
    const text = readFileSync(path.join(cwd, file), 'utf8');
    const isOfExtra = file.startsWith('extras/');
    return isOfExtra ? /\b(?:program|serving)\b.* from '..\/..\/program.ts'/.test(text) : text.includes('extras');
  };
  return ['test', 'extras']
    .flatMap((folder) => readdirSync(path.join(cwd, folder), { recursive: true }).map((name) => `${folder}/${name}`))
    .filter((file) => /(?<!\.(?:slow|quiet))\.test\.ts$/.test(file) && isSeen(file));
}

/** A copy of the tree without these extras. */
async function copyWithout(t: TestContext, names: readonly string[]): Promise<string> {
  const cwd = await temporary(t);
  const files = execFileSync('git', ['ls-files', '-z'], { cwd: ROOT, encoding: 'utf8' }).split('\0').slice(0, -1);
  for (const file of files) {
    mkdirSync(path.join(cwd, path.dirname(file)), { recursive: true });
    cpSync(path.join(ROOT, file), path.join(cwd, file));
  }
  symlinkSync(path.join(ROOT, 'node_modules'), path.join(cwd, 'node_modules'));
  execFileSync('git', ['init', '-q'], { cwd }); // the linter leaves out what git ignores
  for (const name of names) rmSync(path.join(cwd, 'extras', name), { recursive: true });
  const list = path.join(cwd, 'extras/list.ts');
  const isLeft = (line: string) => !names.some((name) => line.includes(`'./${name}/extra.ts'`));
  const lines = readFileSync(list, 'utf8').split('\n').filter(isLeft);
  const isEmpty = !lines.some((line) => line.startsWith('export'));
  writeFileSync(list, isEmpty ? 'export {};\n' : lines.join('\n'));
  return cwd;
}

/** Starts the program, and resolves with the reply to the line that it prints, or to that line with another path. */
async function typed(cwd: string, word?: string, path = '/v1/pets'): Promise<string> {
  const words = ['start', '--silent', '--', '--port', '0', ...(word === undefined ? [] : [word])];
  const child = spawn('npm', words, { cwd, env, detached: true });
  try {
    for await (const line of createInterface(child.stdout)) {
      if (line.startsWith('curl ')) return (await run('sh', ['-c', `${line.replace('/v1/pets', path)} -i`])).stdout;
    }
    assert.fail('it ended before it printed the line');
  } finally {
    process.kill(-child.pid!, 'SIGKILL');
  }
}

for (const names of [...EXTRAS.map((name) => [name]), EXTRAS]) {
  test(`without ${names.join(', ')}: types, style, a start, and the tests that could see it`, async (t) => {
    const cwd = await copyWithout(t, names);
    for (const words of [
      ['run', 'typecheck'],
      ['run', 'lint'],
      ['test', '--', ...testsThatSee(cwd)],
    ]) {
      await run('npm', words, { cwd, env, maxBuffer: 2 ** 26 }).catch(({ stdout, stderr }) =>
        assert.fail(`npm ${words.join(' ')}\n${stdout}${stderr}`),
      );
    }
    const [, body] = (await typed(cwd)).split('\r\n\r\n');
    assert.equal(JSON.parse(body).length, 20);
  });
}

test('the extra of extras/README.md is one', async (t) => {
  const cwd = await copyWithout(t, []);
  const [, source] = /```ts\n(.*?)```/s.exec(readFileSync(path.join(ROOT, 'extras/README.md'), 'utf8')) ?? [];
  const [, line] = /in list\.ts: (export .*;)/.exec(source) ?? [];
  mkdirSync(path.join(cwd, 'extras/hours'));
  writeFileSync(path.join(cwd, 'extras/hours/extra.ts'), source);
  appendFileSync(path.join(cwd, 'extras/list.ts'), `${line}\n`);
  await run('npm', ['run', 'typecheck'], { cwd, env });
  assert.match(await typed(cwd, '--hours', '/hours'), /\r\n\r\nalways\n$/);
});
