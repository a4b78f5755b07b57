/** Rules of the source: the direction of imports, what is loaded only where it is used, and links in the documents. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

const filesIn = (folder: string, ending: string): string[] =>
  readdirSync(join(ROOT, folder), { recursive: true })
    .map((name) => join(folder, String(name)))
    .filter((name) => name.endsWith(ending) && !name.includes('node_modules'))
    .sort();
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');
const pathFrom = (file: string, target: string) => relative(ROOT, join(ROOT, dirname(file), target));
const SOURCES = filesIn('src', '.ts');
const DOCUMENTS = ['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md', ...filesIn('docs', '.md')];

interface Import {
  /** The path of the imported file, from the root. */
  readonly file: string;
  /** The text between `import` and `from`. */
  readonly names: string;
}
const importsOf = (file: string): Import[] =>
  [...read(file).matchAll(/^(?:import|export)\b([^;]*?)from '(\.[^']+)'/gms)].map(([, names, to]) => {
    return { names, file: pathFrom(file, to) };
  });

/** What each room may import beside its own files; `*` for everything. */
const ALLOWED: Record<string, string> = {
  'assets.ts': '',
  'clock.ts': '',
  'text.ts': '',
  json: 'text.ts',
  http: 'clock.ts json store/model.ts text.ts',
  access: 'clock.ts http/errors.ts store/engine.ts store/model.ts',
  store: 'access/limiter.ts access/usage.ts clock.ts json/int64.ts text.ts',
  shop: 'access clock.ts http json store/model.ts text.ts',
  service: 'access clock.ts http shop store/engine.ts store/model.ts',
  postgres: 'access/limiter.ts clock.ts json/int64.ts store',
  lab: 'access/limiter.ts clock.ts http json service/routes.ts shop/shop.ts store/model.ts',
  web: 'assets.ts http/errors.ts text.ts',
  client: 'http/errors.ts json/int64.ts store/model.ts',
  operator: '*',
  'extra.ts': 'operator service/routes.ts store/engine.ts',
  'main.ts': 'operator',
};
const roomOf = (file: string) => file.split('/')[1];

test('imports go one way', () => {
  for (const file of SOURCES) {
    const allowed = ALLOWED[roomOf(file)]?.split(' ');
    assert.ok(allowed !== undefined, `${file} is in no room of the map`);
    for (const imported of importsOf(file)) {
      if (roomOf(imported.file) === roomOf(file)) continue;
      const inside = imported.file.slice('src/'.length);
      const fits = (room: string) => room === '*' || inside === room || inside.startsWith(`${room}/`);
      assert.ok(allowed.some(fits), `${file} imports ${imported.file}`);
    }
  }
});

test('http, json and access know no animal', () => {
  for (const file of SOURCES.filter((one) => ['http', 'json', 'access'].includes(roomOf(one)))) {
    for (const { names } of importsOf(file)) assert.doesNotMatch(names, /\b(?:Pet|Order|Category)/, file);
  }
});

test('only --store loads PostgreSQL, only --lab the lab, and nothing in the service the client', () => {
  for (const file of SOURCES) {
    const loads = /^(?:import|export) (?!type )[^;]*?from '[^']*\/(?:postgres|lab|client)\//m;
    assert.doesNotMatch(read(file), loads, `${file} loads it at its start, not by import()`);
  }
});

test('no file imports itself by a detour: what is left of imports when the program runs has no cycle', () => {
  const isLoaded = ({ names }: Import) => !names.startsWith(' type ');
  const loaded = (file: string) => importsOf(file).filter(isLoaded);
  const graph = new Map(SOURCES.map((file) => [file, loaded(file).map((one) => one.file)]));
  const done = new Set<string>();
  const walk = (file: string, path: string[]): void => {
    assert.ok(!path.includes(file), `a cycle: ${[...path, file].join(' → ')}`);
    if (done.has(file)) return;
    for (const next of graph.get(file) ?? []) walk(next, [...path, file]);
    done.add(file);
  };
  for (const file of SOURCES) walk(file, []);
});

test('what the documents name exists: where links lead, files and npm scripts', () => {
  const { scripts } = JSON.parse(read('package.json'));
  for (const document of DOCUMENTS) {
    const text = read(document);
    for (const [, target] of text.matchAll(/\]\((?!https?:)([^)#]+)[^)]*\)/g)) {
      assert.ok(existsSync(join(ROOT, dirname(document), target)), `${document} links to ${target}`);
    }
    for (const [, file] of text.matchAll(/`((?:src|test|docs|scripts|bench)\/[\w./-]+\.\w+)`/g)) {
      assert.ok(existsSync(join(ROOT, file)) || file === 'bench/report.html', `${document} names ${file}`);
    }
    for (const [, script] of text.matchAll(/npm run (?:--silent )?([\w:]+)/g)) {
      assert.ok(scripts[script], `${document}: ${script}`);
    }
  }
});
