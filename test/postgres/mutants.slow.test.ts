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

/** A text that stands once in a file, and what stands there instead. */
type Edit = [file: string, from: string, to: string];

const MUTANTS: [what: string, test: string, ...edits: Edit[]][] = [
  [
    'the check of ids',
    'postgres/replicas: knows another history',
    ['src/postgres/journal.ts', 'known && known.id !== row.id', 'false'],
  ],
  [
    'sending the same batch again',
    'postgres/wire: cut at any message',
    ['src/postgres/journal.ts', '  this.counts.doubts++;', '  this.#sent = undefined; return sent.resolve([]);'],
  ],
  [
    'one lock of the head at a time',
    'postgres/journal: no batch is told as kept',
    ['src/postgres/journal.ts', 'this.#locking ??= this.#lockHead()', 'await this.#lockHead()'],
  ],
  [
    'FOR UPDATE',
    'postgres/limiter: a take waits for one',
    ['src/postgres/sql.ts', 'ORDER BY l.slot FOR UPDATE OF l', 'ORDER BY l.slot'],
  ],
  [
    'the order of the slots',
    'postgres/replicas: in order',
    ['src/postgres/limiter.ts', '.sort((a, b) => a - b)', ''],
    ['src/postgres/sql.ts', 'ORDER BY l.slot FOR UPDATE', 'ORDER BY a.at FOR UPDATE'],
    ['src/postgres/sql.ts', '$2::int[]) AS a(slot, n)', '$2::int[]) WITH ORDINALITY AS a(slot, n, at)'],
  ],
  [
    'the second look at the key',
    'postgres/program: that a key has ended',
    ['src/gate.ts', 'const still = callers.identify(authorization)', 'const still = caller'],
  ],
  [
    'the look-up of an Idempotency-Key in the decision',
    'shop/shop: two services on one journal',
    ['src/shop/idempotency.ts', 'if (made === undefined) return make', 'if (true) return make'],
  ],
];

for (const [what, test, ...edits] of MUTANTS) {
  it(`without ${what} a test fails`, { skip: missing }, async (t) => {
    const copy = await temporary(t);
    for (const part of ['src', 'test', 'scripts', 'data', 'package.json', 'tsconfig.json']) {
      cpSync(path.join(ROOT, part), path.join(copy, part), { recursive: true });
    }
    symlinkSync(path.join(ROOT, 'node_modules'), path.join(copy, 'node_modules'));
    for (const [file, from, to] of edits) {
      const parts = readFileSync(path.join(copy, file), 'utf8').split(from);
      assert.equal(parts.length, 2, `"${from}" stands once in ${file}`);
      writeFileSync(path.join(copy, file), parts.join(to));
    }
    const [suite, name] = test.split(': ');
    const words = ['--import', 'tsx', '--test', '--test-name-pattern', name, `test/${suite}.test.ts`];
    // Without the program that is bundled for all tests: that one has every safeguard.
    const { NODE_TEST_CONTEXT: _, PETSTORE_TEST_BUNDLES: __, PETSTORE_TEST_PROGRAM: ___, ...env } = process.env;
    const options = { cwd: copy, env, encoding: 'utf8', timeout: 120_000 } as const;
    const { status, stdout } = spawnSync(process.execPath, words, options);
    assert.notEqual(status, 0, 'no test fails');
    assert.match(stdout, /not ok|✖/, 'it does not even run');
    assert.doesNotMatch(stdout, /Transform failed|SyntaxError/);
  });
}
