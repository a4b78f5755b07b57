/** The table of docs/small/README.md, command by command: the small edition breaks each promise, the full service none. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { temporary } from './program.ts';

const cwd = fileURLToPath(new URL('../docs/small', import.meta.url));
const NAMES = [...readFileSync(`${cwd}/README.md`, 'utf8').matchAll(/\| `([\w-]+)` \| `src\/[\w/.-]+` \| \d+ \|$/gm)];

test('break.ts --of tries a copy that was mended', async (t) => {
  const copy = join(await temporary(t), 'my.ts');
  const small = readFileSync(`${cwd}/petstore.ts`, 'utf8');
  for (const [text, verdict] of [
    [small, 'broken'],
    [small.replace(/(appendFileSync\(log, .*)\);/, '$1, { flush: true });'), 'kept'],
  ]) {
    writeFileSync(copy, text);
    const words = [...process.execArgv, 'break.ts', 'power', '--of', copy];
    const { stdout } = await promisify(execFile)(process.execPath, words, { cwd });
    assert.match(stdout, new RegExp(`^power: ${verdict}: `));
  }
});

for (const [words, verdict] of [
  [[], 'broken'],
  [['--full'], 'kept'],
] as const) {
  test(`break.ts ${words}: every promise of the table is ${verdict}`, async () => {
    const { stdout } = await promisify(execFile)(process.execPath, [...process.execArgv, 'break.ts', ...words], {
      cwd,
    });
    const told = [...stdout.matchAll(/^[\w-]+: \w+(?=: )/gm)].map(([found]) => found);
    assert.deepEqual(told.sort(), NAMES.map(([, name]) => `${name}: ${verdict}`).sort());
  });
}
