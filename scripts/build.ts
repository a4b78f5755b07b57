/**
 * `npm run build`: dist/petstore.cjs (the program, for Node 20.19 and later), dist/client with its declarations,
 * and dist/petstore, a single file that carries its own Node and needs nothing else.
 */
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { bundle, ROOT } from './bundle.ts';
import { buildClient } from './client.ts';

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
    assets: { 'petstore.cjs': main }, // the same once more: what other threads are started with (src/threads/team.ts)
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
await buildClient(path.join(DIST, 'client'));
await buildBinary(stamp);
