/** The habits of the house, held by a test: sizes, the direction of imports, and that the documents tell the truth. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { CATALOGUE } from '../src/http/errors.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const MAX_FILE_LINES = 250;
const MAX_FUNCTION_LINES = 60;
const MAX_LINE_CHARS = 120;

const filesIn = (folder: string, ending: string): string[] =>
  readdirSync(join(ROOT, folder), { recursive: true })
    .map((name) => join(folder, String(name)))
    .filter((name) => name.endsWith(ending) && !name.includes('node_modules'))
    .sort();
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');
const SOURCES = filesIn('src', '.ts');
const DOCUMENTS = [
  'README.md',
  'CHANGELOG.md',
  ...(existsSync(join(ROOT, 'CONTRIBUTING.md')) ? ['CONTRIBUTING.md'] : []),
  ...filesIn('docs', '.md'),
];

const pathFrom = (file: string, target: string) => relative(ROOT, join(ROOT, dirname(file), target));

/** What a file imports, as paths from the root. Types alone (`import type`) tie nothing at run time, but are read too. */
function importsOf(file: string): string[] {
  return [...read(file).matchAll(/^(?:import|export)\b[^;]*?from '(\.[^']+)'/gms)].map((found) =>
    pathFrom(file, found[1]),
  );
}

test('files and lines are short enough to be read', () => {
  for (const file of SOURCES) {
    const lines = read(file).split('\n');
    assert.ok(lines.length - 1 <= MAX_FILE_LINES, `${file} has ${lines.length - 1} lines`);
    for (const [at, line] of lines.entries()) {
      const isTemplate = line.includes('`'); // the formatter does not break these
      assert.ok(line.length <= MAX_LINE_CHARS || isTemplate, `${file}:${at + 1} has ${line.length} characters`);
    }
  }
});

test('functions are short enough to be read', () => {
  // The formatter puts the end of a function at the indentation of its beginning.
  const begins =
    /^( *)(?:export |default |static |async |private |get |set )*(?:function\b.*|#?\w+(?:<[^>]*>)?\(.*\)(?:: [^=]+)?|const \w+ = .*=>) \{$/;
  let seen = 0;
  for (const file of SOURCES) {
    const lines = read(file).split('\n');
    for (const [from, line] of lines.entries()) {
      const found = begins.exec(line);
      if (found === null || /^ *(?:if|for|while|switch|catch)\b/.test(line)) continue;
      const length = lines.slice(from).findIndex((other) => other.startsWith(`${found[1]}}`)) + 1;
      assert.ok(length <= MAX_FUNCTION_LINES, `${file}:${from + 1} has ${length} lines`);
      seen++;
    }
  }
  assert.ok(seen > 200, `${seen} functions were looked at`);
});

/** Rooms that may be imported by each room; `*` for all. */
const ALLOWED: Record<string, string[]> = {
  'clock.ts': [],
  'digits.ts': [],
  'shell.ts': [],
  json: [],
  http: ['digits.ts'],
  access: ['clock.ts', 'store/model.ts'],
  store: ['clock.ts', 'digits.ts', 'json/int64.ts', 'shell.ts'],
  shop: ['clock.ts', 'digits.ts', 'http', 'json', 'store/model.ts'],
  'limit-headers.ts': ['access', 'digits.ts', 'http'],
  'faults.ts': ['http', 'json', 'store/model.ts'],
  'gate.ts': ['access', 'http', 'limit-headers.ts', 'store/model.ts'],
  'routes.ts': ['http', 'shop'],
  'exchange.ts': ['access', 'http', 'json', 'routes.ts', 'shop/call.ts', 'store/model.ts'],
  'pages.ts': ['http'],
  'app.ts': [
    ...['access', 'clock.ts', 'exchange.ts', 'faults.ts', 'gate.ts', 'http', 'json', 'pages.ts', 'routes.ts', 'shop'],
    'store/model.ts',
  ],
  'engine.ts': ['access', 'clock.ts', 'store/model.ts'],
  client: ['access/keys.ts', 'http/errors.ts', 'json', 'store/model.ts'],
  web: ['shell.ts'],
  postgres: ['access', 'clock.ts', 'engine.ts', 'store'],
  lab: [
    ...['access', 'clock.ts', 'engine.ts', 'exchange.ts', 'http', 'json', 'routes.ts', 'shop/call.ts'],
    'store/model.ts',
  ],
  operator: ['*'],
  'main.ts': ['*'],
};
const roomOf = (file: string) => file.split('/')[1];

test('imports go one way, and every way is gone', () => {
  const unused = new Set(Object.entries(ALLOWED).flatMap(([room, all]) => all.map((other) => `${room} → ${other}`)));
  for (const file of SOURCES) {
    const allowed = ALLOWED[roomOf(file)];
    assert.ok(allowed !== undefined, `${file} is in no room of the map`);
    for (const imported of importsOf(file)) {
      const inside = imported.slice('src/'.length);
      if (roomOf(imported) === roomOf(file)) continue;
      const way = allowed.find((room) => room === '*' || inside === room || inside.startsWith(`${room}/`));
      assert.ok(way !== undefined, `${file} imports ${imported}`);
      unused.delete(`${roomOf(file)} → ${way}`);
    }
  }
  assert.deepEqual([...unused], []);
});

test('no file imports itself by a detour', () => {
  const graph = new Map(SOURCES.map((file) => [file, importsOf(file)]));
  const done = new Set<string>();
  const walk = (file: string, path: string[]): void => {
    assert.ok(!path.includes(file), `a circle: ${[...path, file].join(' → ')}`);
    if (done.has(file)) return;
    for (const next of graph.get(file) ?? []) walk(next, [...path, file]);
    done.add(file);
  };
  for (const file of SOURCES) walk(file, []);
});

/** What stands between the braces of an import or export: of each item its name, and the name it is given, if any. */
function itemsOf(list: string): string[][] {
  const items = list.split(',').map((item) => item.trim().replace(/^type /, ''));
  return items.filter((item) => item !== '').map((item) => item.split(' as '));
}

/** Each name that a file exports, as `file: name`. */
function exportsOf(file: string): string[] {
  const text = read(file);
  const declarations = /^export (?:async |abstract )*(?:function\*?|class|const|let|interface|type|enum) (\w+)/gm;
  const declared = [...text.matchAll(declarations)].map((found) => found[1]);
  const lists = [...text.matchAll(/^export (?:type )?\{([^}]*)\}/gm)].map((found) => found[1]);
  const listed = lists.flatMap(itemsOf).map((item) => item.at(-1));
  return [...declared, ...listed].map((name) => `${file}: ${name}`);
}

/** Each name that a file imports, as `file: name`: from a list, or as a member of all that another exports. */
function namesImportedBy(file: string): string[] {
  const text = read(file);
  const names: string[] = [];
  const imports = /^(?:import|export) (?:type )?(?:\{([^}]*)\}|\* as (\w+)) from '(\.[^']+)'/gm;
  for (const [, list, all, target] of text.matchAll(imports)) {
    const members = () => [...text.matchAll(new RegExp(`(?<=\\b${all}\\.)\\w+`, 'g'))];
    const items = list === undefined ? members() : itemsOf(list);
    names.push(...items.map(([name]) => `${pathFrom(file, target)}: ${name}`));
  }
  return names;
}

/** What other programs import. */
const PUBLIC = ['src/client/client.ts', 'src/postgres/engine.ts']; // the latter by import()
/** Exports that tests alone import, by the reason why they stand in src/ all the same. */
const FOR_TESTS: Record<string, string[]> = {
  'time is set in tests, not waited for': ['SetClock'],
  'a maximum is tried at its value, and one beyond': [
    'MAX_CACHED_HEADERS',
    'MAX_DEPTH',
    'MAX_KEYS',
    'MAX_REPLY_BYTES',
    'MAX_SLOTS',
    'MAX_VALUES',
    'MAX_VIOLATIONS_NAMED',
    'REFUSED_PER_MINUTE',
  ],
  'a test that names a shape names that of the source': ['AppSettings'],
  'the OpenAPI document is held against what is served': ['CATALOGUE'],
};

test('what is exported is imported elsewhere', () => {
  const program = [...SOURCES, ...filesIn('bench', '.ts'), ...filesIn('scripts', '.ts')];
  const imported = new Set(program.flatMap(namesImportedBy));
  const byTests = new Set(filesIn('test', '.ts').flatMap(namesImportedBy));
  const exported = SOURCES.filter((file) => !PUBLIC.includes(file)).flatMap(exportsOf);
  assert.ok(exported.length > 100 && imported.size > 100, `${exported.length} exports, ${imported.size} imports`);
  const allowed = new Set(Object.values(FOR_TESTS).flat());
  const faults: string[] = [];
  for (const name of exported.filter((one) => !imported.has(one))) {
    const isAllowed = byTests.has(name) && allowed.delete(name.split(': ')[1]);
    if (!isAllowed) faults.push(`${name} ${byTests.has(name) ? 'is imported by tests alone' : 'is imported nowhere'}`);
  }
  for (const name of allowed) faults.push(`${name} needs no exception`);
  assert.deepEqual(faults, []);
});

test("the README's tree is what stands in src/", () => {
  const tree = /\nsrc\/\n([\s\S]*?)```/.exec(read('README.md'))?.[1] ?? '';
  const told = [...tree.matchAll(/^ {2}(\S+?)\/? /gm)].map((found) => found[1]).sort();
  assert.deepEqual(told, readdirSync(join(ROOT, 'src')).sort());
});

test('links in the documents lead somewhere', () => {
  for (const document of DOCUMENTS) {
    for (const [, target] of read(document).matchAll(/\]\((?!https?:)([^)#]+)[^)]*\)/g)) {
      const path = normalize(join(ROOT, dirname(document), target));
      assert.ok(existsSync(path), `${document} links to ${target}`);
    }
  }
});

test('npm scripts and files that the documents name exist', () => {
  const { scripts } = JSON.parse(read('package.json'));
  for (const document of DOCUMENTS) {
    const text = read(document);
    for (const [, script] of text.matchAll(/npm run (?:--silent )?([\w:]+)/g))
      assert.ok(scripts[script], `${document}: ${script}`);
    for (const [, file] of text.matchAll(/`((?:src|test|docs|scripts|bench)\/[\w./-]+\.\w+)`/g)) {
      assert.ok(existsSync(join(ROOT, file)) || file === 'bench/report.html', `${document} names ${file}`);
    }
  }
});

test('every error code is tested', () => {
  const tests = filesIn('test', '.ts')
    .filter((file) => file !== 'test/tidy.test.ts')
    .map(read)
    .join('\n');
  for (const code of Object.keys(CATALOGUE)) assert.ok(tests.includes(`'${code}'`), `${code} is in no test`);
});

test('every named maximum is used', () => {
  const all = SOURCES.map(read).join('\n');
  for (const [, name] of all.matchAll(/const ([A-Z][A-Z_\d]*(?:MAX|TIMEOUT|_MS)[A-Z_\d]*|MAX_[A-Z_\d]+) =/g)) {
    assert.ok(all.split(new RegExp(`\\b${name}\\b`)).length > 2, `${name} is never used`);
  }
});

test('nothing is left for later in a comment, and no test is switched off', () => {
  const marks = /\b(?:TODO|FIXME|XXX|HACK)\b/;
  const off = /\b(?:test|it|describe)\.(?:only|todo)\(/;
  const self = join('test', 'tidy.test.ts');
  for (const file of [
    ...SOURCES,
    ...filesIn('test', '.ts'),
    ...filesIn('bench', '.ts'),
    ...filesIn('scripts', '.ts'),
  ]) {
    if (file === self) continue;
    assert.doesNotMatch(read(file), marks, file);
    assert.doesNotMatch(read(file), off, file);
  }
});
