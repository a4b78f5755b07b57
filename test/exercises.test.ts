/** The tour tells the truth, and each of its exercises can be solved, but is not solved yet. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const FOLDER = 'test/exercises';
const TOUR = readFileSync(join(ROOT, 'docs/tour.md'), 'utf8');
const EXERCISES = readdirSync(join(ROOT, FOLDER))
  .filter((name) => name.endsWith('.check.ts'))
  .map((name) => name.slice(0, -'.check.ts'.length));

/** All checks in one process, as TAP, on the starting files or the solutions. */
function runChecks(files: 'starts' | 'solutions'): Promise<string> {
  const imports = EXERCISES.map((name) => `await import('./${FOLDER}/${name}.check.ts');`).join('\n');
  const loader = process.execArgv.filter((_, at, all) => all[at] === '--import' || all[at - 1] === '--import');
  const args = [...loader, '--test-reporter=tap', '--input-type=module', '--eval', imports];
  // Little of our own environment: by it node:test would take the process for a child of its runner.
  const env = { PATH: process.env.PATH, EXERCISES: files };
  return new Promise((resolve) => {
    execFile(process.execPath, args, { cwd: ROOT, env }, (_error, stdout, stderr) => resolve(stdout + stderr));
  });
}

/** The verdict on each exercise: its check is one `describe` of the exercise's name. */
function verdicts(tap: string): Record<string, boolean> {
  const found = [...tap.matchAll(/^(not ok|ok) \d+ - (\S+)$/gm)];
  return Object.fromEntries(found.map(([, verdict, name]) => [name, verdict === 'ok']));
}

const solutions = runChecks('solutions');
const starts = runChecks('starts');
const all = (solved: boolean) => Object.fromEntries(EXERCISES.map((name) => [name, solved]));

test('every exercise can be solved: the reference solutions pass', async () => {
  assert.ok(EXERCISES.length > 0);
  const tap = await solutions;
  assert.deepEqual(verdicts(tap), all(true), tap);
});

test('no exercise is solved yet: each starting file fails, and by what its check asserts', async () => {
  const tap = await starts;
  const found = verdicts(tap);
  const solved = EXERCISES.filter((name) => found[name]).map((name) => `${FOLDER}/${name}.ts`);
  assert.deepEqual(solved, [], `well done; to put the start back: git checkout ${solved.join(' ')}`);
  assert.deepEqual(found, all(false), tap);
  const failures = tap.match(/^ +not ok/gm)?.length;
  assert.equal(tap.match(/^ +code: 'ERR_ASSERTION'/gm)?.length, failures, tap);
});

test('the tour names every exercise, and only files that are there', () => {
  for (const name of EXERCISES) assert.ok(TOUR.includes(`${FOLDER}/${name}.check.ts`), `the tour leaves out ${name}`);
  const named = TOUR.match(/\b(?:src|test|docs|data)\/[\w./-]+\.(?:ts|md|json)\b/g) ?? [];
  assert.ok(named.length > EXERCISES.length);
  for (const file of named) assert.ok(existsSync(join(ROOT, file)), `the tour names ${file}`);
});

test('what a step of the tour names beside a file is in that file', () => {
  // A step begins so: 3. **[`src/file.ts`](../src/file.ts), `name`, `#other`.**
  let seen = 0;
  const steps = [...TOUR.matchAll(/^\d+\. \*\*\[`([^`]+)`\]\(([^)]+)\)((?:, `[^`]+`)*)\.\*\*/gm)];
  assert.equal(steps.length, TOUR.match(/^\d+\. \*\*[^*]*`/gm)?.length, 'each step begins so');
  for (const [, file, link, names] of steps) {
    assert.equal(join('docs', link), file, 'where the link of a step leads');
    const source = readFileSync(join(ROOT, file), 'utf8');
    for (const [, name] of names.matchAll(/`([^`]+)`/g)) {
      assert.match(source, new RegExp(`(?<![\\w#])${name}\\b`), `${name} is not in ${file}`);
      seen++;
    }
  }
  assert.ok(seen > 20, `${seen} names were looked up`);
});
