/** The two ways to run the program without a build: from the source with what it needs at run time, and by `npx`. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { cpSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { temporary } from './program.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** What a clone has. */
const SOURCES = [
  'package.json',
  'package-lock.json',
  '.npmrc',
  'tsconfig.json',
  'scripts',
  'src',
  'extras',
  'data/seed.json',
];

function npm(cwd: string, ...words: string[]): string {
  const { status, stdout, stderr } = spawnSync('npm', words, { cwd, encoding: 'utf8' });
  assert.equal(status, 0, stderr);
  return stdout.trim();
}

/** Of a start by npm, beside other tests. */
const START_MS = 90_000;

/** Runs a server until it has printed its curl line, and resolves with what this line gets. */
async function firstAnswer(cwd: string, command: string, ...words: string[]): Promise<string> {
  const child = spawn(command, words, { cwd, detached: true });
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes) => (printed += bytes));
  try {
    const line = await new Promise<string>((resolve, reject) => {
      const look = () => /^curl .+$/m.exec(printed)?.[0];
      child.stdout.on('data', () => look() && resolve(look()!));
      child.on('close', () => reject(new Error(printed)));
      setTimeout(() => reject(new Error(`no curl line in ${START_MS} ms:\n${printed}`)), START_MS).unref();
    });
    return spawnSync('sh', ['-c', line], { encoding: 'utf8' }).stdout;
  } finally {
    process.kill(-child.pid!, 'SIGTERM'); // npm and its children
  }
}

test('a clone with its run-time dependencies alone serves, and so does the package', async (t) => {
  const clone = await temporary(t);
  for (const name of SOURCES) cpSync(path.join(ROOT, name), path.join(clone, name), { recursive: true });
  npm(clone, 'ci', '--omit=dev');
  const served = await firstAnswer(clone, 'npm', 'start', '--', '--port', '0');
  assert.match(served, /^\[\{"id":1,"name":/);

  const file = npm(clone, 'pack', '--silent').split('\n').at(-1)!;
  const elsewhere = await temporary(t);
  npm(elsewhere, 'install', '--no-audit', '--no-fund', path.join(clone, file)); // over the network, as long as it takes
  const words = ['petstore', 'serve', '--seed', 'demo', '--first-key', 'free', '--port', '0'];
  assert.match(await firstAnswer(elsewhere, 'npx', ...words), /^\[\{"id":1,"name":/);
});
