/**
 * Runs the tests with node:test. `node test/run.mjs [FILE or FOLDER …]`; without any all of
 * `test/` and `extras/`. Of a folder it runs
 * all `*.test.ts` but two kinds: with `--slow` the `*.slow.test.ts`, which wait in real time or need packages; with
 * `--quiet` the `*.quiet.test.ts`, which measure and want a machine that does nothing else. Where this Node does not
 * read TypeScript by itself, typescript.mjs does.
 */
import '../scripts/needs-node.mjs';
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { run } from 'node:test';
import report from './reporter.mjs';

/** Of one test; on Node 20, which knows no such limit, of one file. Nothing is expected to take so long. */
const MAX_TEST_MINUTES = { slow: 60, quiet: 20, undefined: 10 };
/** Files: slow ones start processes of their own; of the others some wait, for a disk or a reply. */
const MAX_AT_ONCE = { slow: availableParallelism(), quiet: 1, undefined: availableParallelism() + 3 };

/** What takes longest begins first, so that none runs alone at the end. */
const LONGEST = [
  'extras/console/test/console',
  'extras/postgres/test/faults',
  'extras/postgres/test/wire',
  'test/http',
  'extras/postgres/test',
  'test/operator/life',
  'test/faults',
  'test/operator',
  'test/store/journal',
  'test/api',
];

const [major, minor] = process.versions.node.split('.').map(Number);
const readsTypeScript = major > 23 || (major === 22 && minor >= 18) || (major === 23 && minor >= 6);
const words = process.argv.slice(2);
const kinds = ['slow', 'quiet'];
const kind = kinds.find((one) => words.includes(`--${one}`));
const unknown = words.find((word) => word.startsWith('-') && !kinds.some((one) => word === `--${one}`));
if (unknown !== undefined) refuse(`there is no option ${unknown}: there are --slow and --quiet`);
const named = words.filter((word) => !word.startsWith('-'));
const files = (named.length > 0 ? named : ['test', 'extras']).flatMap(testFiles);
const loader = readsTypeScript ? [] : ['--enable-source-maps', '--import', import.meta.resolve('./typescript.mjs')];
// test/program.ts bundles the program into it, and typescript.mjs makes JavaScript there, once for all files.
const bundles = mkdtempSync(join(tmpdir(), 'petstore-bundles-'));
process.on('exit', () => rmSync(bundles, { recursive: true, force: true }));
process.env.TEST_BUNDLES = bundles;
process.execArgv.push(...loader); // the runner starts each process with them
const events = run({
  files: files.map((file) => resolve(file)), // in this order; `node --test` sorts them by name
  concurrency: MAX_AT_ONCE[kind],
  timeout: MAX_TEST_MINUTES[kind] * 60_000,
});
events.on('test:fail', () => (process.exitCode = 1));
for await (const text of report(events, files)) process.stdout.write(text);

function testFiles(place) {
  const found = statSync(place, { throwIfNoEntry: false });
  if (found === undefined) refuse(`there is no file or folder ${place}`);
  if (!found.isDirectory()) return [place];
  const inside = readdirSync(place, { recursive: true })
    .filter((name) => name.endsWith('.test.ts') && /\.(slow|quiet)\.test\.ts$/.exec(name)?.[1] === kind)
    .map((name) => join(place, name))
    .sort()
    .sort((a, b) => rank(a) - rank(b));
  if (inside.length === 0 && named.length > 0) refuse(`${place} holds no file *${kind ? `.${kind}` : ''}.test.ts`);
  return inside;
}

function rank(file) {
  const at = LONGEST.findIndex((begin) => file.startsWith(begin));
  return at === -1 ? LONGEST.length : at;
}

function refuse(why) {
  console.error(`no test was run: ${why}`);
  process.exit(2);
}
