/** Rules of the source: the direction of imports, what is loaded only where it is used, and names in the documents. */
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

/** The names that a file imports or exports from others, each with the path of that file from the root. */
const importsOf = (file: string): string[] =>
  [...read(file).matchAll(/^(?:import|export)\b[^;]*?from '(\.[^']+)'/gms)].map(([, to]) => pathFrom(file, to));

test('the small edition needs Node alone', () => {
  const modules = [...read('docs/small/petstore.ts').matchAll(/ from '([^']+)'|\b(?:import|require)\(/g)];
  assert.ok(modules.length > 0);
  for (const [, name] of modules) assert.match(name ?? 'import()', /^node:/);
});

/** What each module may import; `*` for everything. */
const ALLOWED: Record<string, string> = {
  'clock.ts': '',
  'digits.ts': '',
  'quoting.ts': '',
  json: 'quoting.ts',
  http: 'clock.ts quoting.ts',
  access: 'clock.ts store/model.ts',
  store: 'clock.ts digits.ts json/int64.ts quoting.ts',
  shop: 'clock.ts digits.ts http json store/model.ts',
  'limit-headers.ts': 'access digits.ts',
  'api-errors.ts': 'access http json store/bounds.ts store/model.ts',
  'after.ts': '',
  'gate.ts': 'access clock.ts exchange.ts http limit-headers.ts store/model.ts',
  'routes.ts': 'http shop',
  'exchange.ts': 'access http json routes.ts store/model.ts',
  'pages.ts': 'http',
  'app.ts':
    'access after.ts api-errors.ts clock.ts digits.ts exchange.ts gate.ts http json pages.ts routes.ts shop store/model.ts',
  'engine.ts': 'access clock.ts store/model.ts',
  client: 'access/key-form.ts http/errors.ts json/int64.ts store/model.ts',
  web: 'quoting.ts',
  postgres: 'access clock.ts engine.ts quoting.ts store',
  lab: 'access clock.ts engine.ts exchange.ts http json routes.ts store/model.ts',
  operator: '*',
  'main.ts': '*',
};
const moduleOf = (file: string) => file.split('/')[1];

test('imports go one way', () => {
  for (const file of SOURCES) {
    const allowed = ALLOWED[moduleOf(file)]?.split(' ');
    assert.ok(allowed !== undefined, `${file} is in no module of the map`);
    for (const imported of importsOf(file)) {
      const inside = imported.slice('src/'.length);
      if (moduleOf(imported) === moduleOf(file)) continue;
      const fits = (module: string) => module === '*' || inside === module || inside.startsWith(`${module}/`);
      assert.ok(allowed.some(fits), `${file} imports ${imported}`);
    }
  }
});

test('only --store loads PostgreSQL, and only --lab the lab', () => {
  for (const file of SOURCES) {
    const loads = /^(?:import|export) (?!type )[^;]*?from '[^']*\/(?:postgres|lab)\//m;
    assert.doesNotMatch(read(file), loads, `${file} loads it at its start, not by import()`);
  }
});

test('no file imports itself by a detour', () => {
  const graph = new Map(SOURCES.map((file) => [file, importsOf(file)]));
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

test('nothing is left for later in a comment, and no test is switched off', () => {
  const marks = /\b(?:TODO|FIXME|XXX|HACK)\b|\b(?:test|it|describe)\.(?:only|todo)\(/;
  const all = [SOURCES, ...['test', 'bench', 'scripts'].map((folder) => filesIn(folder, '.ts'))].flat();
  for (const file of all) if (file !== join('test', 'tidy.test.ts')) assert.doesNotMatch(read(file), marks, file);
});
