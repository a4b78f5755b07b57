/**
 * What the documents show of the source is taken from it: excerpts, and counts of lines. `WRITE_DOCS=1 npm test --
 * test/docs.test.ts` writes them anew.
 */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { written } from './written.ts';

const ROOT = new URL('../', import.meta.url);
const read = (file: string) => readFileSync(new URL(file, ROOT), 'utf8');

/** `<!-- src/x.ts f -->`, and below it the function or method `f` or `#f` of that file. */
const EXCERPT = /<!-- (\S+) (\w+) -->\n```ts\n.*?```/gs;
const SOURCES = readdirSync(new URL('src/', ROOT), { recursive: true })
  .map((name) => `src/${name}`)
  .filter((name) => name.endsWith('.ts'));

/** The lines of the function or method with this name, up to the brace that closes it; undefined if there is none. */
function functionIn(file: string, name: string): string | undefined {
  const lines = read(file).split('\n');
  const declares = new RegExp(`^ *(export )?(static )?(async )?(function )?#?${name}(<[^>]*>)?\\(([^;]*\\{)?$`);
  const first = lines.findIndex((line) => declares.test(line));
  if (first === -1) return;
  const indent = lines[first].search(/\S/);
  const last = lines.findIndex((line, index) => index > first && line === `${' '.repeat(indent)}}`);
  return lines.slice(first, last + 1).map((line) => line.slice(indent)).join('\n'); // biome-ignore format: one thing
}

test('the tour shows the source as it is', () => {
  const tour = 'docs/tour.md';
  const text = read(tour);
  assert.equal(text.match(EXCERPT)?.length, text.match(/^```ts$/gm)?.length, 'each excerpt says where it is from');
  const renewed = text.replace(EXCERPT, (_, named: string, name: string) => {
    // A function that has moved is found where it is now.
    const isThere = SOURCES.includes(named) && functionIn(named, name) !== undefined;
    const file = isThere ? named : SOURCES.find((one) => functionIn(one, name) !== undefined);
    assert.ok(file !== undefined, `there is no function ${name} in src/`);
    return `<!-- ${file} ${name} -->\n\`\`\`ts\n${functionIn(file, name)}\n\`\`\``;
  });
  written(new URL(tour, ROOT), renewed);
});

/** The lines of TypeScript of some files and folders, without tests and without the folders that are counted apart. */
function linesOf(places: readonly string[], apart: readonly string[]): number {
  const files = places.flatMap((place) => {
    if (place.endsWith('.ts')) return [place];
    const all = readdirSync(new URL(place, ROOT), { recursive: true }).map((name) => `${place}${name}`);
    return all.filter((file) => /\.ts$/.test(file) && !/\/(test|dist)\//.test(file));
  });
  const inside = apart.filter((folder) => places.some((place) => folder !== place && folder.startsWith(place)));
  const isApart = (file: string) => inside.some((folder) => file.startsWith(folder));
  return files.filter((file) => !isApart(file)).reduce((sum, file) => sum + read(file).split('\n').length - 1, 0);
}

/** A row of the drawing: places with their count, such as `├─ http/   1,130   node:http with …`. */
const ROW = /^([ │├└─]*)([\w./-]+(?:, [\w./-]+)*)( +[\d,]+)(?= {3})/gm;
/** A count may be so much off before it must be written anew. */
const TOLERANCE = process.env.WRITE_DOCS === '1' ? 0 : 0.05;

test('the README counts the lines of each room', () => {
  const text = read('README.md');
  const [drawing] = /```\nsrc\/ .*?```/s.exec(text) ?? [];
  assert.ok(drawing !== undefined, 'it draws src/');
  const placesOf = (names: string) =>
    names.split(', ').map((name) => (/^(?:extras|src)\//.test(name) ? name : `src/${name}`));
  const rows = [...drawing.matchAll(ROW)];
  assert.ok(rows.length > 6);
  const all = rows.flatMap(([, , names]) => placesOf(names));
  const counted = drawing.replace(ROW, (row, before, names: string, told: string) => {
    if (!placesOf(names).every((place) => existsSync(new URL(place, ROOT)))) return row; // an extra that is not here
    const lines = linesOf(placesOf(names), all);
    if (Math.abs(Number(told.replaceAll(',', '')) / lines - 1) < TOLERANCE) return row;
    const rounded = (10 * Math.round(lines / 10)).toLocaleString('en');
    return before + names + rounded.padStart(told.length);
  });
  written(
    new URL('README.md', ROOT),
    text.replace(drawing, () => counted),
  );
});
