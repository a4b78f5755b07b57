/** One name for one thing: the words of docs/glossary.md are where it says, and those it has retired are nowhere. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const GLOSSARY = readFileSync(`${ROOT}docs/glossary.md`, 'utf8');
const rowsOf = (text: string, cells: number): string[][] =>
  [...text.matchAll(/^\|(.+)\|$/gm)]
    .map(([, row]) => row.split('|').map((cell) => cell.trim()))
    .filter((row) => row.length === cells && !/^-+$/.test(row[0]) && row[0] !== 'word' && row[0] !== 'retired');
const TEXTS = ['src', 'test', 'docs', 'bench', 'scripts']
  .flatMap((folder) =>
    readdirSync(ROOT + folder, { recursive: true, encoding: 'utf8' }).map((name) => `${folder}/${name}`),
  )
  .filter((name) => /\.(ts|mjs|md|patch)$/.test(name) && name !== 'docs/glossary.md' && !name.includes('node_modules'))
  .concat('README.md', 'CONTRIBUTING.md')
  .map((name) => ({ name, text: readFileSync(ROOT + name, 'utf8') }));

test('each word of the glossary has one row, and stands in the file that the row names', () => {
  const rows = rowsOf(GLOSSARY, 4);
  assert.ok(rows.length > 30);
  const words = rows.flatMap(([word]) => word.split(', '));
  assert.deepEqual(
    words.filter((word, at) => words.indexOf(word) !== at),
    [],
  );
  for (const [word, , , where] of rows) {
    const file = ROOT + where.replaceAll('`', '');
    assert.ok(existsSync(file), `${word}: ${where}`);
    const text = readFileSync(file, 'utf8')
      .replaceAll(/([a-z])([A-Z])/g, '$1 $2')
      .replaceAll(/\s+\*?\s*/g, ' ')
      .toLowerCase();
    assert.ok(
      word.split(', ').some((one) => text.includes(one)),
      `${word} does not stand in ${where}`,
    );
  }
});

test('no retired word is left', () => {
  const retired = rowsOf(GLOSSARY, 2).map(([word]) => word.replaceAll('`', ''));
  assert.ok(retired.length > 10);
  const left = retired.flatMap((word) => {
    const whole = new RegExp(`(?<![\\w/])${word.replace('.', '\\.')}(?!\\w)`);
    return TEXTS.filter(({ text }) => whole.test(text)).map(({ name }) => `${word} in ${name}`);
  });
  assert.deepEqual(left, []);
});
