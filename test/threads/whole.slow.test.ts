/** What the other tests of threads try in part, whole; and each safeguard taken out of a copy: a test must fail for it. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { temporary } from '../program.ts';
import { NO_THREADS } from './served.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const loader = process.execArgv.includes('tsx') ? ['--import', 'tsx'] : []; // as this test itself is read

/** Runs one test of a file in this folder; gives how it ended. */
function run(cwd: string, file: string, name: string, variables: Record<string, string> = {}) {
  // Without what another run has bundled, or names: this is another program.
  const { NODE_TEST_CONTEXT: _, PETSTORE_TEST_BUNDLES: __, PETSTORE_TEST_PROGRAM: ___, ...env } = process.env;
  const words = [
    ...loader,
    '--test',
    '--test-reporter=tap',
    '--test-name-pattern',
    name,
    `test/threads/${file}.test.ts`,
  ];
  const options = { cwd, env: { ...env, ...variables }, encoding: 'utf8', timeout: 600_000 } as const;
  return spawnSync(process.execPath, words, options);
}

test('100,000 animals are added, and each is read on another connection: none is missed', { skip: NO_THREADS }, () => {
  const { status, stdout } = run(ROOT, 'program', 'is read on every other', { PETSTORE_TEST_PAIRS: '100000' });
  assert.equal(status, 0, stdout);
  assert.match(stdout, /# pass 1\n/);
});

const PUBLISH = 'Atomics.add(this.#words, PUBLISHED, 1)';
const LATER = `setTimeout(() => ${PUBLISH}, 5)`;

/** `from` stands once in the file, `to` is put in its place. */
const MUTANTS: [what: string, test: string, file: string, from: string, to: string][] = [
  [
    'the lock of a take',
    'limiter: exactly its limit is admitted',
    'limiter.ts',
    'lock(this.#words, number);\n    try {\n      return super.take',
    'try {\n      return super.take',
  ],
  [
    'its being clean again when a change is written down',
    'limiter: a change is named again',
    'limiter.ts',
    '        this.rows[at] = 0;\n',
    '',
  ],
  ['the number before the acknowledgement', 'feed: what is published is read at once', 'feed.ts', PUBLISH, LATER],
  ['the number before the acknowledgement', 'program: is read on every other', 'feed.ts', PUBLISH, LATER],
  [
    'the look at the number before a read',
    'program: is read on every other',
    'feed.ts',
    'if (Atomics.load(this.#words, PUBLISHED) !== this.#applied) this.#catchUp();',
    '',
  ],
  [
    'the wait for the number',
    'feed: what is delivered and not published',
    'feed.ts',
    'for (const published = Atomics.load(this.#words, PUBLISHED);',
    'for (const published = this.#applied + this.#early.length;',
  ],
];

for (const [what, shown, file, from, to] of MUTANTS) {
  const [suite, name] = shown.split(': ');
  test(`without ${what} a test fails: ${shown}`, { skip: suite === 'program' && NO_THREADS }, async (t) => {
    const copy = await temporary(t);
    for (const part of ['src', 'test', 'scripts', 'data', 'package.json', 'tsconfig.json']) {
      cpSync(path.join(ROOT, part), path.join(copy, part), { recursive: true });
    }
    symlinkSync(path.join(ROOT, 'node_modules'), path.join(copy, 'node_modules'));
    const source = path.join(copy, 'src/threads', file);
    const parts = readFileSync(source, 'utf8').split(from);
    assert.equal(parts.length, 2, `"${from}" stands once in ${file}`);
    writeFileSync(source, parts.join(to));
    const { status, stdout } = run(copy, suite, name);
    assert.notEqual(status, 0, 'no test fails');
    assert.match(stdout, /^ *not ok/m, 'it does not even run');
    assert.doesNotMatch(stdout, /Transform failed|SyntaxError|ReferenceError/);
  });
}
