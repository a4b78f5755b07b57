/** The table of docs/small/README.md, command by command: the small edition breaks each promise, the full service none. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { EXERCISES, mended } from './mends.ts';
import { temporary } from './program.ts';

const cwd = fileURLToPath(new URL('../docs/small', import.meta.url));
const NAMES = [...readFileSync(`${cwd}/README.md`, 'utf8').matchAll(/\| `([\w-]+)` \| `src\/[\w/.-]+` \| \d+ \|$/gm)];

test('break.ts --of accepts the mends of the exercises, and refuses half mends', { concurrency: 3 }, async (t) => {
  const small = readFileSync(`${cwd}/petstore.ts`, 'utf8');
  const dir = await temporary(t);
  const tries = Object.entries(EXERCISES).flatMap(([name, { right, half }]) => [
    ...Object.entries(right).map(([what, edits]) => ({ name, what, edits, verdict: 'kept' })),
    ...Object.entries(half).map(([what, edits]) => ({ name, what, edits, verdict: 'broken' })),
  ]);
  const tested = tries.map(({ name, what, edits, verdict }, index) =>
    t.test(`${name}: ${what}: ${verdict}`, async () => {
      const copy = join(dir, `${index}.ts`);
      writeFileSync(copy, mended(small, edits));
      const words = [...process.execArgv, 'break.ts', name, '--of', copy];
      const { stdout } = await promisify(execFile)(process.execPath, words, { cwd });
      assert.match(stdout, new RegExp(`^${name}: ${verdict}: `));
    }),
  );
  await Promise.all(tested);
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
