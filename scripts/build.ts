/**
 * `npm run build [-- --target linux-arm64]`: dist/petstore.cjs (the program, for Node 20.19 and later)
 * and dist/petstore, a single file that carries its own Node; for another machine than this one
 * dist/petstore-linux-arm64. Of a Linux it needs glibc and libatomic1, and `flock` for the lock of a store. Beside
 * them what of others is in it: dist/THIRD-PARTY-NOTICES and dist/petstore.cdx.json. `--target node` makes the program
 * alone. Two builds of one commit are equal byte for byte, wherever made with the same `strip`.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { bundle, ROOT } from './bundle.ts';
import { billOf, componentsOf, noticesOf, runtimeComponent } from './notices.ts';
import { fetchRuntime, OWN_PLATFORM, PLATFORMS } from './runtime.ts';

const DIST = path.join(ROOT, 'dist');
const NOTICES = 'THIRD-PARTY-NOTICES';
const BILL = 'petstore.cdx.json';

function commit(): string {
  try {
    const git = (...args: string[]) => execFileSync('git', ['-C', ROOT, ...args], { encoding: 'utf8' }).trim();
    return (
      git('rev-parse', '--short=12', 'HEAD') +
      (git('status', '--porcelain', '--', 'src', 'extras') === '' ? '' : ' with changes')
    );
  } catch {
    return process.env.COMMIT || 'unknown'; // in the build of the image there is no git
  }
}

/** Takes the symbols out of a runtime for Linux: a quarter of it, which only a debugger of Node itself would want. */
function strip(node: string, target: string): void {
  const program = { 'linux-x64': 'x86_64-linux-gnu-strip', 'linux-arm64': 'aarch64-linux-gnu-strip' }[target];
  if (program === undefined) return;
  if (spawnSync(program, [node]).status !== 0) console.error(`${program} (binutils) is missing: the binary is larger`);
}

/** Makes `petstore` in the workshop, out of the `petstore.cjs` there. `node`: the runtime that goes into it. */
function buildBinary(workshop: string, node: string, builder: string): void {
  // Paths from the folder in which it is made: as they stand in the file, they must not tell where that was.
  const settings = {
    main: 'petstore.cjs',
    mainFormat: 'commonjs',
    executable: path.relative(workshop, node),
    output: 'petstore',
    disableExperimentalSEAWarning: true,
    useCodeCache: node === builder, // it is for the processor that made it
    // The environment and signals of whoever starts it are nobody's way into it.
    execArgv: ['--disable-sigusr1'],
    execArgvExtension: 'none',
  };
  writeFileSync(path.join(workshop, 'sea.json'), JSON.stringify(settings));
  // With a seed of its own the engine would write another code cache each time.
  const words = ['--random-seed=1', '--build-sea', 'sea.json'];
  execFileSync(builder, words, { stdio: ['ignore', 'ignore', 'inherit'], cwd: workshop });
}

const { target = OWN_PLATFORM } = parseArgs({ options: { target: { type: 'string' } } }).values;
const isProgramAlone = target === 'node';
if (!isProgramAlone && !PLATFORMS.includes(target)) {
  console.error(`--target is one of node, ${PLATFORMS.join(', ')}, not ${target}`);
  process.exit(2);
}
const workshop = mkdtempSync(path.join(tmpdir(), 'petstore-build-'));
process.on('exit', () => rmSync(workshop, { recursive: true, force: true }));
mkdirSync(DIST, { recursive: true });
const stamp = commit();
const inputs = await bundle({ outfile: path.join(DIST, 'petstore.cjs'), commit: stamp });
chmodSync(path.join(DIST, 'petstore.cjs'), 0o755);
if (isProgramAlone) {
  writeFileSync(path.join(DIST, NOTICES), noticesOf(componentsOf(inputs)));
  process.exit();
}
const runtime = fetchRuntime(workshop, target);
const components = [...componentsOf(inputs), runtimeComponent(runtime)];
writeFileSync(path.join(DIST, NOTICES), noticesOf(components));
writeFileSync(path.join(DIST, BILL), billOf(components));
await bundle({ outfile: path.join(workshop, 'petstore.cjs'), commit: stamp, minify: true });
strip(runtime.node, target);
const isOwn = target === OWN_PLATFORM;
buildBinary(workshop, runtime.node, isOwn ? runtime.node : fetchRuntime(workshop, OWN_PLATFORM).node);
const binary = path.join(DIST, isOwn ? 'petstore' : `petstore-${target}`);
cpSync(path.join(workshop, 'petstore'), binary);
chmodSync(binary, 0o755);
if (target.startsWith('darwin')) {
  const sign = ['codesign', '--force', '--sign', '-', binary];
  if (process.platform === 'darwin') execFileSync(sign[0], sign.slice(1), { stdio: 'inherit' });
  else console.log(`It runs on a Mac once it is signed there: ${sign.slice(0, -1).join(' ')} FILE`);
}
const megabytes = Math.round(statSync(binary).size / 1e6);
console.log(`${path.relative(process.cwd(), binary)}: ${megabytes} MB, for ${target}, with Node ${runtime.version}`);
