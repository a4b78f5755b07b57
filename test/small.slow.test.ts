/** The table of docs/small/README.md, command by command: the small edition breaks each promise, the full service none. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const cwd = fileURLToPath(new URL('../docs/small', import.meta.url));
const NAMES = [...readFileSync(`${cwd}/README.md`, 'utf8').matchAll(/`npx tsx docs\/small\/break\.ts ([\w-]+)`/g)];

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
