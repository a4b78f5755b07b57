/** The tour tells the truth: what it names is there. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const TOUR = readFileSync(join(ROOT, 'docs/tour.md'), 'utf8');

test('the tour names every exercise', () => {
  const checks = readdirSync(join(ROOT, 'docs/exercises')).filter((name) => name.endsWith('.check.ts'));
  for (const check of checks) assert.ok(TOUR.includes(`docs/exercises/${check}`), `the tour leaves out ${check}`);
});

test('what a step of the tour names beside a file is in that file', () => {
  // A step begins so: 3. **[`src/file.ts`](../src/file.ts), `name`, `#other`.**
  const missing: string[] = [];
  let seen = 0;
  const steps = [...TOUR.matchAll(/^\d+\. \*\*\[`([^`]+)`\]\(([^)]+)\)((?:, `[^`]+`)*)\.\*\*/gm)];
  assert.equal(steps.length, TOUR.match(/^\d+\. \*\*[^*]*`/gm)?.length, 'each step begins so');
  for (const [, file, link, names] of steps) {
    assert.equal(join('docs', link), file, 'where the link of a step leads');
    const source = existsSync(join(ROOT, file)) ? readFileSync(join(ROOT, file), 'utf8') : '';
    for (const [, name] of names.matchAll(/`([^`]+)`/g)) {
      if (!new RegExp(`(?<![\\w#])${name}\\b`).test(source)) missing.push(`${name} in ${file}`);
      seen++;
    }
  }
  assert.ok(seen > 20, `${seen} names were looked up`);
  assert.deepEqual(missing, []);
});
