/** Each safeguard of the engine is taken out of a copy of the program in turn: a test must fail for it. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { temporary } from '../program.ts';
import { missing } from './database.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

interface Mutant {
  what: string;
  file: string;
  /** Each text that stands in the file, and what stands there instead. */
  edits: [from: string, to: string][];
  /** The test file, and which test of it. */
  test: [file: string, name: string];
}

const MUTANTS: Mutant[] = [
  {
    what: 'the check of ids',
    file: 'src/postgres/journal.ts',
    edits: [['known && known.id !== row.id', 'false']],
    test: ['postgres/replicas', 'knows another history'],
  },
  {
    what: 'sending the same batch again',
    file: 'src/postgres/journal.ts',
    edits: [['          this.counts.doubts++;', '          this.#sent = undefined; return sent.resolve([]);']],
    test: ['postgres/wire', 'cut at any message'],
  },
  {
    what: 'FOR UPDATE',
    file: 'src/postgres/sql.ts',
    edits: [['ORDER BY l.slot FOR UPDATE OF l', 'ORDER BY l.slot']],
    test: ['postgres/limiter', 'a take waits for one'],
  },
  {
    what: 'the order of the slots',
    file: 'src/postgres/limiter.ts',
    edits: [['.sort((a, b) => a - b)', '']],
    test: ['postgres/replicas', 'in order'],
  },
  {
    what: 'the second look at the key',
    file: 'src/gate.ts',
    edits: [['const still = callers.identify(authorization)', 'const still = caller']],
    test: ['postgres/program', 'every command'],
  },
  {
    what: 'the look-up of an Idempotency-Key in the decision',
    file: 'src/shop/once.ts',
    edits: [['  if (made === undefined) return undefined;', '  if (true) return undefined;']],
    test: ['shop/shop', 'two services on one journal'],
  },
];

for (const { what, file, edits, test } of MUTANTS) {
  it(`without ${what} a test fails`, { skip: missing }, async (t) => {
    const copy = await temporary(t);
    const [suite, name] = test;
    for (const part of ['src', 'test', 'scripts', 'data', 'package.json', 'tsconfig.json']) {
      cpSync(path.join(ROOT, part), path.join(copy, part), { recursive: true });
    }
    symlinkSync(path.join(ROOT, 'node_modules'), path.join(copy, 'node_modules'));
    let text = readFileSync(path.join(copy, file), 'utf8');
    for (const [from, to] of edits) {
      assert.equal(text.split(from).length, 2, `"${from}" stands once in ${file}`);
      text = text.replace(from, to);
    }
    if (what === 'the order of the slots') unordered(copy);
    writeFileSync(path.join(copy, file), text);
    const words = ['--import', 'tsx', '--test', '--test-name-pattern', name, `test/${suite}.test.ts`];
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const { status, stdout } = spawnSync(process.execPath, words, {
      cwd: copy,
      env,
      encoding: 'utf8',
      timeout: 120_000,
    });
    assert.notEqual(status, 0, 'no test fails');
    assert.match(stdout, /not ok|✖/, 'it does not even run');
    assert.doesNotMatch(stdout, /Transform failed|SyntaxError/);
  });
}

/** The order is asked for twice: of the statement, too. */
function unordered(copy: string): void {
  const file = path.join(copy, 'src/postgres/sql.ts');
  const text = readFileSync(file, 'utf8');
  writeFileSync(
    file,
    text
      .replace('ORDER BY l.slot FOR UPDATE', 'ORDER BY a.at FOR UPDATE')
      .replace(
        'unnest($1::int[], $2::int[]) AS a(slot, n)',
        'unnest($1::int[], $2::int[]) WITH ORDINALITY AS a(slot, n, at)',
      ),
  );
}
