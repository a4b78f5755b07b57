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
    .filter((name) => name.endsWith(ending) && !name.includes('node_modules') && !name.includes('/page/'))
    .sort();
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');
const pathFrom = (file: string, target: string) => relative(ROOT, join(ROOT, dirname(file), target));
const SOURCES = filesIn('src', '.ts');
/** Not their tests, what builds them, nor the list. */
const OF_EXTRAS = filesIn('extras', '.ts').filter((file) => /^extras\/\w+\/(?!test\/)/.test(file));
const DOCUMENTS = ['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md'].concat(
  filesIn('docs', '.md'),
  filesIn('extras', '.md'),
);

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

/**
 * What each room may import of `src/` beside its own files; `*` for everything. Nothing in `src/` imports an extra, and no
 * extra another: what they need of each other is in `src/extra.ts`.
 */
const ALLOWED: Record<string, string> = {
  'src/assets.ts': '',
  'src/clock.ts': '',
  'src/text.ts': '',
  'src/json': 'text.ts',
  'src/http': 'clock.ts text.ts',
  'src/access': 'clock.ts http/errors.ts store/engine.ts store/model.ts',
  'src/store': 'access/limiter.ts access/memory-limiter.ts clock.ts json/int64.ts text.ts',
  'src/shop': 'access clock.ts http json store/model.ts text.ts',
  'src/service': 'access assets.ts clock.ts http json shop store/engine.ts store/model.ts',
  'src/operator': '*',
  'src/extra.ts': 'operator/options.ts service/routes.ts store/engine.ts',
  'src/main.ts': 'operator/run.ts',
  'extras/console': 'assets.ts extra.ts operator/options.ts service/public.ts',
  'extras/postgres':
    'access/limiter.ts clock.ts extra.ts json/int64.ts store/engine.ts store/group-commit.ts store/log-format.ts ' +
    'store/model.ts store/schema.ts store/tables.ts',
};
const roomOf = (file: string) => file.split('/').slice(0, 2).join('/');

test('imports go one way, and an extra takes named files of the service alone', () => {
  for (const file of [...SOURCES, ...OF_EXTRAS]) {
    const allowed = ALLOWED[roomOf(file)]?.split(' ');
    assert.ok(allowed !== undefined, `${file} is in no room of the map`);
    for (const { file: imported } of importsOf(file)) {
      if (roomOf(imported) === roomOf(file)) continue;
      const fits = (room: string) => room === '*' || `${imported}/`.startsWith(`src/${room}/`);
      assert.ok(imported.startsWith('src/') && allowed.some(fits), `${file} imports ${imported}`);
    }
  }
});

test('the list has the extras that are there, and loads nothing of them but what they say of themselves', () => {
  const listed = [...read('extras/list.ts').matchAll(/^export \{ (\w+) \} from '\.\/(\w+)\/extra\.ts';$/gm)];
  const there = filesIn('extras', '/extra.ts').map((file) => file.split('/')[1]);
  assert.deepEqual(listed.map(([, , folder]) => folder).sort(), there);
});

test('http, json and access know no animal', () => {
  for (const file of SOURCES.filter((one) => /^src\/(http|json|access)\//.test(one))) {
    for (const { names } of importsOf(file)) assert.doesNotMatch(names, /\b(?:Pet|Order|Category)/, file);
  }
});

test('without --store nothing of PostgreSQL is loaded but what it says of itself', () => {
  for (const file of ['extras/postgres/extra.ts'].filter((one) => existsSync(join(ROOT, one)))) {
    const loads = /^import (?!type )[^;]*?from '\.\//m;
    assert.doesNotMatch(read(file), loads, `${file} loads it at the start, not by import()`);
  }
});

/**
 * What the documents of Node do not describe: tracers and newer versions of Node need not respect it. Two exceptions stand
 * in src/http/server.ts, each with its reason; test/http/connections.test.ts shows what breaks without them.
 */
const UNDOCUMENTED = [
  /\._\w+/,
  /\b(?:assignSocket|detachSocket|destroySoon|shouldKeepAlive|getOwnPropertySymbols|internalBinding)\b/,
  /\bprocess\.binding\b/,
  /\b(?:IncomingMessage|ServerResponse|Socket|Server)\.prototype\b/,
  /\bhttpAllowHalfOpen\b/,
];
const EXCEPTIONS = ['httpAllowHalfOpen: true', 'NetServer.prototype.close.call(this.server'];

test('only what the documents of Node describe is used of it', () => {
  for (const file of SOURCES) {
    let text = read(file);
    if (file === 'src/http/server.ts') for (const one of EXCEPTIONS) text = text.replace(one, '');
    for (const name of UNDOCUMENTED) assert.doesNotMatch(text, name, file);
  }
});

test('no file imports itself by a detour: what is left of imports when the program runs has no cycle', () => {
  const isLoaded = ({ names }: Import) => !names.startsWith(' type ');
  const loaded = (file: string) => importsOf(file).filter(isLoaded);
  const graph = new Map([...SOURCES, ...OF_EXTRAS].map((file) => [file, loaded(file).map((one) => one.file)]));
  const done = new Set<string>();
  const walk = (file: string, path: string[]): void => {
    assert.ok(!path.includes(file), `a cycle: ${[...path, file].join(' → ')}`);
    if (done.has(file)) return;
    for (const next of graph.get(file) ?? []) walk(next, [...path, file]);
    done.add(file);
  };
  for (const file of graph.keys()) walk(file, []);
});

/** Whether a path is of an extra that is not here. */
const isAway = (file: string) => {
  const [, folder] = /^(extras\/\w+)\//.exec(file) ?? [];
  return folder !== undefined && !existsSync(join(ROOT, folder));
};

test('what the documents name exists: where links lead, files and npm scripts', () => {
  const { scripts } = JSON.parse(read('package.json'));
  for (const document of DOCUMENTS) {
    const text = read(document);
    for (const [, target] of text.matchAll(/\]\((?!https?:)([^)#]+)[^)]*\)/g)) {
      const file = pathFrom(document, target);
      assert.ok(existsSync(join(ROOT, file)) || isAway(file), `${document} links to ${target}`);
    }
    for (const [, file] of text.matchAll(/`((?:src|extras|test|docs|scripts|bench)\/[\w./-]+\.\w+)`/g)) {
      assert.ok(existsSync(join(ROOT, file)) || isAway(file), `${document} names ${file}`);
    }
    for (const [, script] of text.matchAll(/npm run (?:--silent )?([\w:]+)/g)) {
      assert.ok(scripts[script], `${document}: ${script}`);
    }
  }
});
