/** The tables of docs/small/README.md, command by command: the small edition breaks each promise, the full service none. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { transformSync } from 'esbuild';
import { EXERCISES, mended } from './mends.ts';
import { temporary } from './program.ts';

const cwd = fileURLToPath(new URL('../docs/small', import.meta.url));
const NAMES = [...readFileSync(`${cwd}/README.md`, 'utf8').matchAll(/\| `([\w-]+)` \| `src\/[\w/.-]+` \| \d+ \|$/gm)];

interface Told {
  readonly stdout: string;
  readonly status: number;
}
const node = (words: readonly string[]): Promise<Told> =>
  new Promise((resolve) =>
    execFile(process.execPath, words, { cwd }, (error, stdout) =>
      resolve({ stdout, status: Number(error?.code ?? 0) }),
    ),
  );
/** Runs it three times at most, until all is kept: some promises are of seconds, in which a busy machine may stand still. */
async function keeps(words: readonly string[]): Promise<Told> {
  for (let tries = 1; ; tries++) {
    const told = await node(words);
    if (told.status === 0 || tries === 3) return told;
  }
}
const asJavaScript = (text: string) => transformSync(text, { loader: 'ts' }).code.replaceAll('.ts"', '.mjs"');

test('the checker praises the mends of the exercises, and no half mend', { concurrency: 6 }, async (t) => {
  const small = readFileSync(`${cwd}/petstore.ts`, 'utf8');
  const dir = await temporary(t);
  for (const name of ['break', 'exercises', 'program']) {
    writeFileSync(join(dir, `${name}.mjs`), asJavaScript(readFileSync(`${cwd}/${name}.ts`, 'utf8')));
  }
  copyFileSync(`${cwd}/watched-disk.mjs`, join(dir, 'watched-disk.mjs'));
  const tries = Object.entries(EXERCISES).flatMap(([name, { right, half }]) => [
    ...Object.entries(right).map(([what, edits]) => ({ name, what, edits, verdict: 'kept' })),
    ...Object.entries(half).map(([what, edits]) => ({ name, what, edits, verdict: 'broken' })),
  ]);
  const rung = join(dir, 'mended.mjs');
  writeFileSync(rung, asJavaScript(readFileSync(`${cwd}/mended.ts`, 'utf8')));
  await t.test('mended.ts: all exercises are kept', async () => {
    const names = Object.keys(EXERCISES);
    const { stdout, status } = await keeps([join(dir, 'break.mjs'), ...names, '--of', rung]);
    assert.equal(status, 0, stdout);
    assert.deepEqual([...stdout.matchAll(/^[\w-]+(?=: kept: )/gm)].map(String).sort(), names.sort());
  });
  const tested = tries.map(({ name, what, edits, verdict }, index) =>
    t.test(`${name}: ${what}: ${verdict}`, async () => {
      const copy = join(dir, `${name}-${index}.mjs`);
      writeFileSync(copy, asJavaScript(mended(small, edits)));
      const judge = verdict === 'kept' ? keeps : node;
      const { stdout, status } = await judge([join(dir, 'break.mjs'), name, '--of', copy]);
      assert.match(stdout, new RegExp(`^${name}: ${verdict}: (?!it does not start: SyntaxError(?!.*JSON))`));
      assert.doesNotMatch(stdout, /ReferenceError|TypeError/); // a mistake of this half mend, which proves nothing
      assert.equal(status, verdict === 'kept' ? 0 : 1);
    }),
  );
  await Promise.all(tested);
});

test('a program that does not start is told, and the other names go on', async (t) => {
  const copy = join(await temporary(t), 'empty.mjs');
  writeFileSync(copy, 'throw new Error("no program yet")');
  const { stdout, status } = await node([...process.execArgv, 'break.ts', 'power', 'int64', 'health', '--of', copy]);
  for (const name of ['power', 'int64', 'health']) {
    assert.match(stdout, new RegExp(`^${name}: broken: it does not start: Error: no program yet$`, 'm'));
  }
  assert.equal(status, 1);
  const missing = await node([...process.execArgv, 'break.ts', 'power', '--of', `${copy}.missing`]);
  assert.match(
    missing.stdout,
    /^power: broken: it does not start: Error \[ERR_MODULE_NOT_FOUND\]: Cannot find module .*\n$/,
  );
});

for (const [words, verdict] of [
  [[], 'broken'],
  [['--full'], 'kept'],
] as const) {
  test(`break.ts ${words}: every promise of the table is ${verdict}`, async () => {
    const judge = verdict === 'kept' ? keeps : node;
    const { stdout, status } = await judge([...process.execArgv, 'break.ts', ...words]);
    const told = [...stdout.matchAll(/^[\w-]+: \w+(?=: )/gm)].map(([found]) => found);
    assert.deepEqual(told.sort(), NAMES.map(([, name]) => `${name}: ${verdict}`).sort(), stdout);
    assert.equal(status, verdict === 'kept' ? 0 : 1);
  });
}
