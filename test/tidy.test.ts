/** The habits of the house, held by a test: sizes, the direction of imports, and that the documents tell the truth. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const MAX_FILE_LINES = 250;
const MAX_FUNCTION_LINES = 60;
const MAX_LINE_CHARS = 120;
const MAX_SMALL_LINES = 300;

const filesIn = (folder: string, ending: string): string[] =>
  readdirSync(join(ROOT, folder), { recursive: true })
    .map((name) => join(folder, String(name)))
    .filter((name) => name.endsWith(ending) && !name.includes('node_modules'))
    .sort();
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');
const linesOf = (file: string) => read(file).replace(/\n$/, '').split('\n');
const pathFrom = (file: string, target: string) => relative(ROOT, join(ROOT, dirname(file), target));
const SOURCES = filesIn('src', '.ts');
const DOCUMENTS = ['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md', ...filesIn('docs', '.md')];

/** What a file imports, as paths from the root. Types alone (`import type`) tie nothing at run time, but are read too. */
const importsOf = (file: string): string[] =>
  [...read(file).matchAll(/^(?:import|export)\b[^;]*?from '(\.[^']+)'/gms)].map(([, to]) => pathFrom(file, to));

test('files, lines and functions are short enough to be read', () => {
  // The formatter puts the end of a function at the indentation of its beginning.
  const begins =
    /^( *)(?!if\b|for\b|while\b|switch\b|catch\b)(?:export |default |static |async |private |get |set )*(?:function\b.*|#?\w+(?:<[^>]*>)?\(.*\)(?:: [^=]+)?|const \w+ = .*=>) \{$/;
  let functions = 0;
  for (const file of SOURCES) {
    const lines = linesOf(file);
    assert.ok(lines.length <= MAX_FILE_LINES, `${file} has ${lines.length} lines`);
    for (const [at, line] of lines.entries()) {
      const isTemplate = line.includes('`'); // the formatter does not break these
      assert.ok(line.length <= MAX_LINE_CHARS || isTemplate, `${file}:${at + 1} has ${line.length} characters`);
      const found = begins.exec(line);
      if (found === null) continue;
      const length = lines.slice(at).findIndex((other) => other.startsWith(`${found[1]}}`)) + 1;
      assert.ok(length <= MAX_FUNCTION_LINES, `${file}:${at + 1} has ${length} lines`);
      functions++;
    }
  }
  assert.ok(functions > 200, `${functions} functions were looked at`);
});

test('the small edition is short, is formatted as the rest, and needs Node alone', () => {
  const file = 'docs/small/petstore.ts';
  const lines = linesOf(file);
  assert.ok(lines.length <= MAX_SMALL_LINES, `${file} has ${lines.length} lines`);
  for (const line of [...lines, ...linesOf('docs/small/break.ts')]) assert.ok(line.length <= MAX_LINE_CHARS, line);
  const modules = [...read(file).matchAll(/ from '([^']+)'|\b(?:import|require)\(/g)].map(([, name]) => name);
  assert.deepEqual(
    modules.filter((name) => !name?.startsWith('node:')),
    [],
  );
  assert.ok(modules.length > 0);
});

/** Modules that may be imported by each module; `*` for all. */
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
  lab: 'access clock.ts engine.ts exchange.ts http json junit.ts routes.ts store/model.ts',
  'junit.ts': 'quoting.ts',
  operator: '*',
  'main.ts': '*',
};
const moduleOf = (file: string) => file.split('/')[1];
const waysOf = (module: string) => ALLOWED[module]?.split(' ').filter((other) => other !== '');

test('imports go one way, and every way is gone', () => {
  const unused = new Set(
    Object.keys(ALLOWED).flatMap((module) => waysOf(module).map((other) => `${module} → ${other}`)),
  );
  for (const file of SOURCES) {
    const allowed = waysOf(moduleOf(file));
    assert.ok(allowed !== undefined, `${file} is in no module of the map`);
    for (const imported of importsOf(file)) {
      const inside = imported.slice('src/'.length);
      if (moduleOf(imported) === moduleOf(file)) continue;
      const way = allowed.find((module) => module === '*' || inside === module || inside.startsWith(`${module}/`));
      assert.ok(way !== undefined, `${file} imports ${imported}`);
      unused.delete(`${moduleOf(file)} → ${way}`);
    }
  }
  assert.deepEqual([...unused], []);
});

test('only --store loads PostgreSQL, and --lab the lab', () => {
  for (const file of SOURCES) {
    const loads = /^(?:import|export) (?!type )[^;]*?from '[^']*\/(?:postgres|lab)\//m;
    assert.doesNotMatch(read(file), loads, `${file} loads it at its start, not by import()`);
  }
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

/** The names that a file exports; and those that one imports, each with its file: in a list, or as members of all. */
const EXPORTED = /^export (?:async |abstract )*(?:function\*?|class|const|let|interface|type|enum) (\w+)/gm;
function namesImportedBy(file: string): string[] {
  const text = read(file);
  const lists = [...text.matchAll(/^(?:import|export) (?:type )?\{([^}]*)\} from '(\.[^']+)'/gm)];
  const wholes = [...text.matchAll(/^import \* as (\w+) from '(\.[^']+)'/gm)];
  const membersOf = (name: string) => text.match(new RegExp(`(?<=\\b${name}\\.)\\w+`, 'g'));
  return [
    ...lists.map(([, list, target]) => [target, list.match(/\w+/g)] as const),
    ...wholes.map(([, name, target]) => [target, membersOf(name)] as const),
  ].flatMap(([target, names]) => (names ?? []).map((name) => `${pathFrom(file, target)} ${name}`));
}

/** What other programs import. */
const BY_IMPORT_CALL = ['src/postgres/engine.ts'];
const PUBLIC = ['src/client/client.ts', ...BY_IMPORT_CALL];
/** Exports that tests alone import. */
const FOR_TESTS = [
  // A maximum is tried at its value, and one beyond.
  ...['MAX_DEPTH', 'MAX_KEYS', 'MAX_KNOWN_HEADERS', 'MAX_REPLY_BYTES', 'MAX_VALUES'],
  ...['LAB_CALLS', 'MAX_LINKS'],
  'placesOf', // what cannot be is tried with rows of its own
];

test('what is exported is imported elsewhere', () => {
  const program = [...SOURCES, ...filesIn('bench', '.ts'), ...filesIn('scripts', '.ts')];
  const imported = new Set(program.flatMap(namesImportedBy));
  const byTests = new Set(filesIn('test', '.ts').flatMap(namesImportedBy));
  const allowed = new Set(FOR_TESTS);
  const faults: string[] = [];
  let seen = 0;
  for (const file of SOURCES.filter((one) => !PUBLIC.includes(one))) {
    for (const [, name] of read(file).matchAll(EXPORTED)) {
      seen++;
      const isTested = byTests.has(`${file} ${name}`);
      if (imported.has(`${file} ${name}`) || (isTested && allowed.delete(name))) continue;
      faults.push(`${file}: ${name} is imported ${isTested ? 'by tests alone' : 'nowhere'}`);
    }
  }
  for (const name of allowed) faults.push(`${name} needs no exception`);
  assert.ok(seen > 100, `${seen} exports`);
  assert.deepEqual(faults, []);
});

test("the README's tree is what stands in src/", () => {
  const tree = /\nsrc\/\n([\s\S]*?)```/.exec(read('README.md'))?.[1] ?? '';
  const told = [...tree.matchAll(/^ {2}(\S+?)\/? /gm)].map((found) => found[1]).sort();
  assert.deepEqual(told, readdirSync(join(ROOT, 'src')).sort());
});

test('the parts of the README’s reading list are as long as it tells, at 400 to 600 lines an hour', () => {
  const text = read('README.md');
  const close = (names: string[], told: string) => {
    const isNamed = (file: string) =>
      names.some((name) => file === `src/${name}` || (name.endsWith('/') && file.startsWith(`src/${name}`)));
    const found = SOURCES.filter(isNamed).flatMap(linesOf).length;
    const lines = Number(told.replace(',', ''));
    assert.ok(Math.abs(found - lines) <= 0.15 * lines, `${names.join(', ')}: ${lines} lines are told, ${found} found`);
  };
  const rows = [...text.matchAll(/^\| (?:first|second|third) \|[^|]*\|([^|]*)\| (\d+) \| ([\d,]+) \|$/gm)];
  assert.equal(rows.length, 3);
  for (const [, names, hours, lines] of rows) {
    close(names.match(/(?<=`)[\w./-]+(?=`)/g) ?? [], lines);
    const speed = Number(lines.replace(',', '')) / Number(hours);
    assert.ok(speed >= 400 && speed <= 600, `${lines} lines in ${hours} hours`);
  }
  for (const [, room, lines] of text.matchAll(/`(\w+\/)` \(([\d,]+)(?: lines)?\)/g)) close([room], lines);
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
