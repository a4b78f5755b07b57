/** The tour tells the truth: what it names is there, and each exercise can be solved, but is not solved yet. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { isSealed } from '../src/store/file/format.ts';
import { applyPatch, edited, editsOf } from './patched.ts';
import { temporary } from './program.ts';
import { startService } from './service.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');
const FOLDER = 'docs/exercises';
const PATCH = `${FOLDER}/solutions/delete-pet.patch`;
/** Of this many files a write of a new kind may need a change; where it takes more, the house is at fault. */
const MAX_FILES = 12;
const EXERCISES = readdirSync(join(ROOT, FOLDER))
  .filter((name) => name.endsWith('.check.ts'))
  .map((name) => name.slice(0, -'.check.ts'.length))
  .sort();

test('what a step of the tour names beside a file is in that file', () => {
  const tour = read('docs/tour.md');
  // A step begins so: 3. **[`src/file.ts`](../src/file.ts), `name`, `#other`.**
  const missing: string[] = [];
  let seen = 0;
  const steps = [...tour.matchAll(/^\d+\. \*\*\[`([^`]+)`\]\(([^)]+)\)((?:, `[^`]+`)*)\.\*\*/gm)];
  assert.equal(steps.length, tour.match(/^\d+\. \*\*[^*]*`/gm)?.length, 'each step begins so');
  for (const [, file, link, names] of steps) {
    assert.equal(join('docs', link), file, 'where the link of a step leads');
    const source = existsSync(join(ROOT, file)) ? read(file) : '';
    for (const [, name] of names.matchAll(/`([^`]+)`/g)) {
      if (!new RegExp(`(?<![\\w#])${name}\\b`).test(source)) missing.push(`${name} in ${file}`);
      seen++;
    }
  }
  assert.ok(seen > 20, `${seen} names were looked up`);
  assert.deepEqual(missing, []);
});

test('the record that the tour shows is the one that its request writes', async (t) => {
  const tour = read('docs/tour.md');
  const [, body] = /\nContent-Length: \d+\n\n(.+)\n```/.exec(tour) ?? [];
  const [, record] = /\n```\n(\{"crc":[^`]+)\n```/.exec(tour) ?? [];
  const dir = await temporary(t);
  const service = await startService({ dir });
  const { text: key } = await service.makeKey();
  const headers = { 'content-type': 'application/json' };
  const { status } = await service.fetch('/v1/pets', { method: 'POST', key, headers, body });
  await service.close();
  const written = readFileSync(join(dir, 'store-000001.jsonl'), 'utf8').split('\n');
  assert.equal(status, 201);
  assert.equal(record.replaceAll('\n ', ''), written[3]);
});

test('a line of a file in the documents has the checksum of its bytes', () => {
  const lines = ['docs/formats.md', 'docs/tour.md'].flatMap(
    (document) => read(document).match(/^ *\{"crc":"[\da-f]{8}",.*(?:\n "op":.*)?/gm) ?? [],
  );
  const wrong = lines.filter((line) => !isSealed(Buffer.from(line.trim().replaceAll('\n ', ''))));
  assert.ok(lines.length >= 3, `${lines.length} lines`);
  assert.deepEqual(wrong, []);
});

/** What this process was told to load first, so that another can read TypeScript too. */
const LOADER = process.execArgv.filter((_, at, all) => all[at] === '--import' || all[at - 1] === '--import');

/** Checks all exercises in one process: the verdict on each, whose check is one `describe` of its name. */
function runChecks(files: 'starts' | 'solutions', cwd: string) {
  const imports = EXERCISES.map((name) => `await import('./${FOLDER}/${name}.check.ts');`).join('\n');
  const args = [...LOADER, '--test-reporter=tap', '--input-type=module', '--eval', imports];
  // Little of our own environment: by it node:test would take the process for a child of its runner.
  const env = { PATH: process.env.PATH, EXERCISES: files };
  const { stdout, stderr } = spawnSync(process.execPath, args, { cwd, env, encoding: 'utf8' });
  const tap = stdout + stderr;
  const found = [...tap.matchAll(/^(not ok|ok) \d+ - (\S+)$/gm)];
  assert.equal(found.length, EXERCISES.length, tap);
  return { tap, solved: found.filter(([, verdict]) => verdict === 'ok').map(([, , name]) => name) };
}

test('no exercise is solved yet: each fails as it stands, and by what its check asserts', () => {
  const { tap, solved } = runChecks('starts', ROOT);
  const files = solved.map((name) => `${FOLDER}/${name}.ts`);
  assert.deepEqual(files, [], `well done; to put the start back: git checkout ${files.join(' ')}`);
  const failures = tap.match(/^ +not ok/gm)?.length;
  assert.equal(tap.match(/^ +code: 'ERR_ASSERTION'/gm)?.length, failures, tap);
});

test('a solution is found its places where others have changed what is around them, and refused where it has none', () => {
  const edits = editsOf(' one\n two\n-three\n+THREE\n four\n five\n+six\n seven\n');
  const solve = (text: string) => edited(text.replaceAll(' ', '\n'), edits).replaceAll('\n', ' ');
  assert.equal(solve('one two three four five seven'), 'one two THREE four five six seven');
  assert.equal(solve('zero ONE two three 3.5 FOUR five new seven'), 'zero ONE two THREE 3.5 FOUR five six new seven');
  assert.equal(solve('three one two three four five seven'), 'three one two THREE four five six seven');
  for (const text of ['one two 3 four five seven', 'three three five', 'five seven three']) {
    assert.throws(() => solve(text), /nowhere/, text);
  }
});

test(`every exercise can be solved; a write of a new kind, removing an animal, takes at most ${MAX_FILES} files`, async (t) => {
  const copy = await temporary(t);
  for (const name of ['src', 'test', FOLDER, 'data', 'package.json', 'tsconfig.json']) {
    cpSync(join(ROOT, name), join(copy, name), { recursive: true });
  }
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  applyPatch(copy, read(PATCH));
  const { tap, solved } = runChecks('solutions', copy);
  assert.deepEqual(solved, EXERCISES, tap);
  const env = { PATH: process.env.PATH };
  const document = spawnSync(process.execPath, [...LOADER, 'test/web/openapi.test.ts'], { cwd: copy, env });
  assert.equal(document.status, 0, `its document, with the new operation: ${document.stdout}`);
  for (const name of EXERCISES) assert.ok(read('docs/tour.md').includes(`${FOLDER}/${name}.check.ts`), name);

  const told = [...read(`${FOLDER}/delete-pet.md`).matchAll(/^\| `([^`]+)` \|/gm)].map(([, file]) => file);
  const changed = [...read(PATCH).matchAll(/^\+\+\+ b\/(.+)$/gm)].map(([, file]) => file);
  assert.deepEqual([...changed, 'docs/formats.md'].sort(), told.sort());
  assert.ok(told.length <= MAX_FILES, `${told.length} files`);
});
