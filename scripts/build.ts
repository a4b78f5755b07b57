/**
 * `npm run build`: dist/petstore.cjs (the program, for Node 20.19 and later), dist/client.mjs with its declarations,
 * and dist/petstore, a single file that carries its own Node and needs nothing else.
 */
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type BuildOptions, build as esbuild } from 'esbuild';
import { bundle, ROOT } from './bundle.ts';

/** The runtime inside the binary. The npm package `node` of this version is a wrapper of these, one a platform. */
const RUNTIME_VERSION = '26.10.0';

const DIST = path.join(ROOT, 'dist');

function commit(): string {
  try {
    const git = (...args: string[]) => execFileSync('git', ['-C', ROOT, ...args], { encoding: 'utf8' }).trim();
    return (
      git('rev-parse', '--short=12', 'HEAD') + (git('status', '--porcelain', '--', 'src') === '' ? '' : ' with changes')
    );
  } catch {
    return 'unknown';
  }
}

async function buildClient(): Promise<void> {
  const common: BuildOptions = {
    bundle: true,
    platform: 'node',
    target: 'node20.19',
    format: 'esm',
    logLevel: 'warning',
  };
  const apart = './client/needs-node.mjs';
  await esbuild({
    ...common,
    entryPoints: [path.join(ROOT, 'src/client/client.ts')],
    outfile: path.join(DIST, 'client.mjs'),
    packages: 'external', // undici stays the dependency that it is
    // In a file of its own, it is imported before undici, which an older Node fails on.
    plugins: [
      {
        name: 'apart',
        setup: (build) => build.onResolve({ filter: /needs-node/ }, () => ({ path: apart, external: true })),
      },
    ],
  });
  declareClient();
  await esbuild({
    ...common,
    entryPoints: [path.join(ROOT, 'src/client/needs-node.ts')],
    outfile: path.join(DIST, apart),
  });
}

/** The declarations keep the tree of `src/`, since the client shares types with other rooms. */
function declareClient(): void {
  const types = path.join(DIST, 'client');
  rmSync(types, { recursive: true, force: true });
  mkdirSync(types);
  const project = path.join(types, 'tsconfig.json');
  const settings = {
    extends: '../../tsconfig.json',
    compilerOptions: {
      rootDir: '../../src',
      outDir: 'types',
      noEmit: false,
      declaration: true,
      emitDeclarationOnly: true,
      rewriteRelativeImportExtensions: true,
    },
    files: ['../../src/client/client.ts'],
    include: [],
  };
  writeFileSync(project, JSON.stringify(settings));
  execFileSync(process.execPath, [path.join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', project], {
    stdio: 'inherit',
  });
  rmSync(project);
  writeFileSync(path.join(types, 'client.d.ts'), "export * from './types/client/client.js';\n");
}

/** Kept out of node_modules of the project: there it would become the `node` of every npm script. */
function fetchRuntime(): string {
  const dir = path.join(DIST, '.node');
  const name = `node-${process.platform === 'win32' ? 'win' : process.platform}-${process.arch}`;
  const file = path.join(dir, 'node_modules', name, 'bin/node');
  const marker = path.join(dir, 'node_modules', name, 'package.json');
  if (existsSync(file) && JSON.parse(readFileSync(marker, 'utf8')).version === RUNTIME_VERSION) return file;
  mkdirSync(dir, { recursive: true });
  writeFileSync(path.join(dir, 'package.json'), '{"private":true}\n');
  const flags = ['--no-save', '--no-package-lock', '--ignore-scripts', '--prefix', dir];
  execFileSync('npm', ['install', ...flags, `${name}@${RUNTIME_VERSION}`], { stdio: 'inherit', cwd: dir });
  return file;
}

async function buildBinary(stamp: string): Promise<void> {
  const main = path.join(DIST, '.node', 'petstore.cjs');
  const node = fetchRuntime();
  await bundle({ outfile: main, commit: stamp, minify: true });
  const settings = {
    main,
    mainFormat: 'commonjs',
    output: path.join(DIST, 'petstore'),
    disableExperimentalSEAWarning: true,
    useCodeCache: true,
  };
  const config = path.join(DIST, '.node', 'sea.json');
  writeFileSync(config, JSON.stringify(settings));
  execFileSync(node, ['--build-sea', config], { stdio: 'inherit' });
  chmodSync(settings.output, 0o755);
}

mkdirSync(DIST, { recursive: true });
const stamp = commit();
await bundle({ outfile: path.join(DIST, 'petstore.cjs'), commit: stamp });
chmodSync(path.join(DIST, 'petstore.cjs'), 0o755);
await buildClient();
await buildBinary(stamp);
