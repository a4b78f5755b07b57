/** docs/bounds.md lists every maximum of the program: held to the constants of the source, one by one. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');
const CONSTANT = /^(?:export )?const (MAX_\w+)(?:: \w+)? = ([^;]+);/gm;
const ROW = /^\| `(MAX_\w+)` \(`(src\/[^`]+)`\) \| `([^`]+)` \| ([^|]+) \| ([^|]+) \| `(test\/[^`]+)` \|$/gm;

test('docs/bounds.md has a row for every MAX_… of the source, with its value, and a test that exists', () => {
  const sources = readdirSync(join(ROOT, 'src'), { recursive: true })
    .map((name) => `src/${String(name)}`)
    .filter((name) => name.endsWith('.ts'));
  const due = new Map<string, string>(
    sources.flatMap((file) =>
      [...read(file).matchAll(CONSTANT)].map(([, name, value]) => [`${name} (${file})`, value] as [string, string]),
    ),
  );
  assert.ok(due.size > 80, `${due.size} constants`);
  const page = read('docs/bounds.md');
  const rows = [...page.matchAll(ROW)];
  const faults: string[] = [];
  const told = new Set<string>();
  for (const [, name, file, value, , , shownBy] of rows) {
    const key = `${name} (${file})`;
    if (told.has(key)) faults.push(`${key}: has two rows`);
    told.add(key);
    const is = due.get(key);
    if (is === undefined) faults.push(`${key}: is no constant there; take its row out, or mend its name or file`);
    else if (is !== value) faults.push(`${key}: is ${is} in the source; its row says ${value}`);
    if (!existsSync(join(ROOT, shownBy))) faults.push(`${key}: there is no ${shownBy}`);
  }
  for (const [key, value] of due) {
    const [name, file] = [key.split(' ')[0], key.slice(key.indexOf('(') + 1, -1)];
    const row = `| \`${name}\` (\`${file}\`) | \`${value}\` | unit, shared by all or not | behaviour beyond it | \`test/…\` |`;
    if (!told.has(key)) faults.push(`${key}: has no row; add to docs/bounds.md: ${row}`);
  }
  assert.deepEqual(faults, []);
  assert.equal(
    page.match(/^\| `MAX_/gm)?.length,
    rows.length,
    'a row that begins with a constant has the form of the others',
  );
});
