/**
 * The packed client in projects of others: types under every way of resolving modules, bundlers, and runtimes, which
 * come from the registry. It brings nothing with it.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'node:test';
import { promisify } from 'node:util';
import { packageVersion, ROOT } from '../../../scripts/bundle.ts';
import { serving, temporary } from '../../program.ts';

const run = promisify(execFile);
const INSTALL = ['install', '--no-audit', '--no-fund', '--no-package-lock', '--legacy-peer-deps'];

async function packed(t: test.TestContext): Promise<string> {
  const cwd = await temporary(t);
  await run('npm', ['pack', '--pack-destination', cwd, './extras/client'], { cwd: ROOT });
  const [name] = (await readdir(cwd)).filter((file) => file.endsWith('.tgz'));
  return join(cwd, name);
}

/** A project that has the package and these, and what it is told. */
async function project(t: test.TestContext, packages: string[], files: Record<string, string>) {
  const cwd = await temporary(t);
  await writeFile(join(cwd, 'package.json'), '{"private":true,"type":"module"}');
  await run('npm', [...INSTALL, await packed(t), ...packages], { cwd, timeout: 300_000 });
  for (const [name, text] of Object.entries(files)) await writeFile(join(cwd, name), text);
  return { cwd, npx: (line: string) => run('npx', ['--no-install', ...line.split(' ')], { cwd, timeout: 120_000 }) };
}

const USES = `
const store = new PetstoreClient({ baseUrl: process.argv[3] ?? '', key: process.argv[2] ?? '', fetch });
async function main(): Promise<void> {
  const made = await store.createPet({ name: 'Rex', categoryId: 9007199254740993n }, { signal: null }).withResponse();
  const rex: Pet = made.data;
  const names: string[] = [];
  for await (const { name } of store.listPets({ status: 'available' })) names.push(name);
  const [page] = [await store.listPets().page()];
  const error: unknown = await store.getOrder(9).catch((reason: unknown) => reason);
  const code = error instanceof PetstoreError ? error.code : 'none';
  console.log(JSON.stringify([rex.categoryId, made.isNew, names, page.items.length, code]));
}
void main();`;
const SAYS = ['9007199254740993', true, ['Rex'], 1, 'not_found'];
const MODULE = `import { type Pet, PetstoreClient, PetstoreError } from 'petstore-client';\n${USES}`;
/** The same without types. */
const PLAIN = MODULE.replace('type Pet, ', '').replaceAll(
  /: (?:Pet|string\[\]|unknown|Promise<void>)(?= [={]|\))/g,
  '',
);
const REQUIRED = PLAIN.replace(/import (.*) from '(.*)'/, "const $1 = require('$2')");

async function works(t: test.TestContext, command: string, words: string[], cwd: string): Promise<void> {
  const { url, key } = await serving(t, ['--data', await temporary(t), '--first-key', 'free']);
  const { stdout, stderr } = await run(command, [...words, key, url], { cwd, timeout: 60_000 });
  assert.deepEqual([JSON.parse(stdout), stderr], [SAYS, ''], `${command} ${words}`);
}

const STRICTEST = {
  ...{ strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, skipLibCheck: false },
  ...{ noImplicitOverride: true, noPropertyAccessFromIndexSignature: true, verbatimModuleSyntax: false },
  ...{ noEmit: true, target: 'es2022', lib: ['es2023'], types: ['node'] },
};
const WAYS: Record<string, object> = {
  'ESM under NodeNext': { module: 'nodenext' },
  'CommonJS under NodeNext': { module: 'nodenext', isRequired: true },
  Bundler: { module: 'esnext', moduleResolution: 'bundler' },
  'Bundler, with the types of browsers': { module: 'esnext', moduleResolution: 'bundler', lib: ['es2023', 'dom'] },
};

test('the package has no dependency, and its types hold under every way of resolving it', async (t) => {
  const { cwd, npx } = await project(t, ['typescript@5.9.3', '@types/node@20.19.43'], {});
  const installed = JSON.parse(await readFile(join(cwd, 'node_modules/petstore-client/package.json'), 'utf8'));
  assert.deepEqual([installed.dependencies, installed.peerDependencies], [undefined, undefined]);
  assert.equal(installed.version, packageVersion());
  for (const [name, { isRequired = false, ...options }] of Object.entries<{ isRequired?: boolean }>(WAYS)) {
    const file = isRequired ? 'main.cts' : 'main.mts';
    const settings = { compilerOptions: { ...STRICTEST, ...options }, files: [file] };
    await writeFile(join(cwd, file), MODULE);
    await writeFile(join(cwd, 'tsconfig.json'), JSON.stringify(settings));
    const seven = run(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc')], { cwd });
    for (const compiling of [npx('tsc'), seven]) {
      const { stdout } = await compiling.catch((error) => error);
      assert.equal(stdout, '', name);
    }
  }
});

test('Node from 20.19 to 26, Deno and Bun take it as a module, and Node by require', async (t) => {
  const runtimes = ['node@20.19.0', 'node@22.23.3', 'node@24.21.0', 'node@26.10.0'];
  const { cwd } = await project(t, [], { 'main.mjs': PLAIN, 'main.cjs': REQUIRED });
  for (const version of runtimes) {
    const { stdout } = await run('npx', ['--yes', `--package=${version}`, '--', 'node', '-p', 'process.execPath'], {
      cwd,
    });
    for (const file of ['main.mjs', 'main.cjs']) await works(t, stdout.trim(), [file], cwd);
  }
  const others = await project(t, ['bun@1.4.5', 'deno@2.9.6'], { 'main.mjs': PLAIN });
  await works(t, join(others.cwd, 'node_modules/.bin/bun'), ['main.mjs'], others.cwd);
  await works(t, join(others.cwd, 'node_modules/.bin/deno'), ['run', '--allow-all', 'main.mjs'], others.cwd);
});

test('esbuild, vite and webpack bundle it for browsers without a warning, and what comes of it works', async (t) => {
  const packages = ['esbuild@0.28.2', 'vite@8.3.8', 'webpack@5.112.2', 'webpack-cli@7.3.1'];
  const lib = "{ entry: 'main.mjs', formats: ['es'], fileName: 'vite' }";
  const config = `export default { logLevel: 'warn', build: { outDir: 'out', emptyOutDir: false, lib: ${lib} } };`;
  const { cwd, npx } = await project(t, packages, { 'main.mjs': PLAIN, 'vite.config.mjs': config });
  await mkdir(join(cwd, 'out'));
  const built = [
    [
      'out/esbuild.mjs',
      'esbuild main.mjs --bundle --platform=browser --format=esm --log-level=warning --outfile=out/esbuild.mjs',
    ],
    ['out/vite.js', 'vite build'],
    [
      'out/webpack.cjs',
      'webpack ./main.mjs --mode production --target web -o out --output-filename webpack.cjs --stats errors-warnings',
    ],
  ];
  for (const [file, line] of built) {
    const { stdout, stderr } = await npx(line);
    const said = (stdout + stderr).replace(/^npm warn .*/gm, ''); // of npx itself
    assert.doesNotMatch(said, /warn|externalized/i, line);
    await works(t, process.execPath, [file], cwd);
  }
});
