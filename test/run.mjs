/**
 * Runs the tests with node:test. `node test/run.mjs [FILE …]`; without files all `*.test.ts` but two kinds: with `--slow`
 * the `*.slow.test.ts`, which wait in real time or need packages; with `--quiet` the `*.quiet.test.ts`, which measure and
 * want a machine that does nothing else. Where this Node does not read TypeScript by itself, tsx does.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const [major, minor] = process.versions.node.split('.').map(Number);
const readsTypeScript = major > 23 || (major === 22 && minor >= 18) || (major === 23 && minor >= 6);
const words = process.argv.slice(2);
const kind = ['slow', 'quiet'].find((one) => words.includes(`--${one}`));
const named = words.filter((word) => !word.startsWith('--'));
const files = named.length > 0 ? named : testFiles('test');
const loader = readsTypeScript ? [] : ['--import', 'tsx'];
const reporter = ['--test-reporter=./test/reporter.mjs', '--test-reporter-destination=stdout'];
const concurrency = kind === 'quiet' ? 1 : 4; // many wait, for a disk or a time-out, while others work
const args = [...loader, '--test', `--test-concurrency=${concurrency}`, ...reporter, ...files];
// test/program.ts bundles the program into it, once for all files.
const bundles = mkdtempSync(join(tmpdir(), 'petstore-bundles-'));
const env = { ...process.env, PETSTORE_TEST_BUNDLES: bundles };
const { status } = spawnSync(process.execPath, args, { stdio: 'inherit', env });
rmSync(bundles, { recursive: true, force: true });
process.exit(status ?? 1);

function testFiles(folder) {
  return readdirSync(folder, { recursive: true })
    .filter((name) => name.endsWith('.test.ts') && /\.(slow|quiet)\.test\.ts$/.exec(name)?.[1] === kind)
    .map((name) => join(folder, name))
    .sort();
}
