/**
 * Runs the tests with node:test. `node test/run.mjs [FILE …]`; without files, all `*.test.ts` but the slow ones, or with
 * `--slow` only those: they wait in real time, need packages, or want a quiet machine.
 * Where this Node does not read TypeScript by itself, tsx does.
 */
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';

const [major, minor] = process.versions.node.split('.').map(Number);
const readsTypeScript = major > 23 || (major === 22 && minor >= 18) || (major === 23 && minor >= 6);
const words = process.argv.slice(2);
const slow = words.includes('--slow');
const named = words.filter((word) => word !== '--slow');
const files = named.length > 0 ? named : testFiles('test');
const loader = readsTypeScript ? [] : ['--import', 'tsx'];
const args = [...loader, '--test', '--test-concurrency=2', ...files];
process.exit(spawnSync(process.execPath, args, { stdio: 'inherit' }).status ?? 1);

function testFiles(folder) {
  return readdirSync(folder, { recursive: true })
    .filter((name) => name.endsWith('.test.ts') && name.endsWith('.slow.test.ts') === slow)
    .map((name) => join(folder, name))
    .sort();
}
