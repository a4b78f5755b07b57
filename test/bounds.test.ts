/** docs/bounds.md lists every maximum of the program, and waits: held to the constants of the source, one by one. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');
const CONSTANT = /^(?:export )?const ([A-Z]\w+)(?:: \w+)? = ([^;]+);/gm;
/** It was reached by a test, or once by hand: then the row tells how. */
const SHOWN = /(?:`(test\/[^`]+)`[^|]*|by hand: [^|]+)/.source;
const ROW = new RegExp(
  `^\\| \`([A-Z]\\w+)\` \\(\`(src/[^\`]+)\`\\) \\| \`([^\`]+)\` \\| ([^|]+) \\| ([^|]+) \\| ${SHOWN} \\|$`,
  'gm',
);

test('docs/bounds.md has a row for every MAX_… of the source, with its value, and a test that exists', () => {
  const sources = readdirSync(join(ROOT, 'src'), { recursive: true })
    .map((name) => `src/${String(name)}`)
    .filter((name) => name.endsWith('.ts'));
  const constants = new Map<string, string>(
    sources.flatMap((file) =>
      [...read(file).matchAll(CONSTANT)].map(([, name, value]) => [`${name} (${file})`, value] as [string, string]),
    ),
  );
  const due = [...constants].filter(([key]) => key.startsWith('MAX_'));
  assert.ok(due.length > 80, `${due.length} constants`);
  const page = read('docs/bounds.md');
  const rows = [...page.matchAll(ROW)];
  const faults: string[] = [];
  const told = new Set<string>();
  for (const [, name, file, value, , , shownBy] of rows) {
    const key = `${name} (${file})`;
    if (told.has(key)) faults.push(`${key}: has two rows`);
    told.add(key);
    const is = constants.get(key);
    if (is === undefined) faults.push(`${key}: is no constant there; take its row out, or mend its name or file`);
    else if (is !== value) faults.push(`${key}: is ${is} in the source; its row says ${value}`);
    if (shownBy !== undefined && !existsSync(join(ROOT, shownBy))) faults.push(`${key}: there is no ${shownBy}`);
  }
  for (const [key, value] of due) {
    const [name, file] = [key.split(' ')[0], key.slice(key.indexOf('(') + 1, -1)];
    const row = `| \`${name}\` (\`${file}\`) | \`${value}\` | unit, shared by all or not | behaviour beyond it | \`test/…\` |`;
    if (!told.has(key)) faults.push(`${key}: has no row; add to docs/bounds.md: ${row}`);
  }
  assert.deepEqual(faults, []);
  assert.equal(
    page.match(/^\| `[A-Z]/gm)?.length,
    rows.length,
    'a row that begins with a constant has the form of the others',
  );
});
