/**
 * `npm run build`: dist/petstore.cjs (the program, for Node 20.19 and later), dist/client with its declarations, and
 * dist/petstore, a single file that carries its own Node and needs nothing else. Beside them what of others is in it:
 * dist/THIRD-PARTY-NOTICES and dist/petstore.cdx.json. Two builds of one commit are equal byte for byte, wherever made.
 */
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { bundle, ROOT } from './bundle.ts';
import { buildClient } from './client.ts';
import { billOf, componentsOf, noticesOf, runtimeComponent } from './notices.ts';
import { fetchRuntime } from './runtime.ts';

const DIST = path.join(ROOT, 'dist');
const WORKSHOP = path.join(DIST, '.node');
const NOTICES = 'THIRD-PARTY-NOTICES';
const BILL = 'petstore.cdx.json';

function commit(): string {
  try {
    const git = (...args: string[]) => execFileSync('git', ['-C', ROOT, ...args], { encoding: 'utf8' }).trim();
    return (
      git('rev-parse', '--short=12', 'HEAD') + (git('status', '--porcelain', '--', 'src') === '' ? '' : ' with changes')
    );
  } catch {
    return process.env.COMMIT || 'unknown'; // in the build of the image there is no git
  }
}

/** `node`: the runtime that goes into it. */
function buildBinary(node: string): void {
  // Paths from the folder in which it is made: as they stand in the file, they must not tell where that was.
  const settings = {
    main: 'petstore.cjs',
    mainFormat: 'commonjs',
    output: '../petstore',
    disableExperimentalSEAWarning: true,
    useCodeCache: true,
    // The environment and signals of whoever starts it are nobody's way into it.
    execArgv: ['--disable-sigusr1'],
    execArgvExtension: 'none',
  };
  writeFileSync(path.join(WORKSHOP, 'sea.json'), JSON.stringify(settings));
  // With a seed of its own the engine would write another code cache each time.
  execFileSync(node, ['--random-seed=1', '--build-sea', 'sea.json'], { stdio: 'inherit', cwd: WORKSHOP });
  chmodSync(path.join(DIST, 'petstore'), 0o755);
}

mkdirSync(WORKSHOP, { recursive: true });
const stamp = commit();
const inputs = await bundle({ outfile: path.join(DIST, 'petstore.cjs'), commit: stamp });
chmodSync(path.join(DIST, 'petstore.cjs'), 0o755);
await buildClient(path.join(DIST, 'client'));
const runtime = fetchRuntime(WORKSHOP);
const components = [...componentsOf(inputs), runtimeComponent(runtime)];
writeFileSync(path.join(DIST, NOTICES), noticesOf(components));
writeFileSync(path.join(DIST, BILL), billOf(components));
await bundle({ outfile: path.join(WORKSHOP, 'petstore.cjs'), commit: stamp, minify: true });
buildBinary(runtime.node);
