/** The program itself, for as long as its shortest run takes. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Results } from '../../bench/results.ts';

const MAIN = fileURLToPath(new URL('../../bench/main.ts', import.meta.url));
const folder = mkdtempSync(path.join(os.tmpdir(), 'petstore-bench-test-'));
after(() => rmSync(folder, { recursive: true }));

/** On a PATH with no other program than Node. */
function bench(...args: string[]) {
  const env = { ...process.env, TMPDIR: folder, PATH: path.dirname(process.execPath) };
  return spawnSync(process.execPath, ['--import', 'tsx', MAIN, ...args], { env, encoding: 'utf8' });
}

test('it measures the service beside bare node:http with Node alone, and leaves nothing behind', () => {
  const page = path.join(folder, 'report.html');
  const { status, stdout, stderr } = bench('create', 'limit', '--rounds', '2', '--json', '--report', page);
  assert.equal(status, 0, stdout + stderr);
  const { rows }: Results = JSON.parse(stdout);
  const paths = ['create, durable', 'create, durable, 256 connections', '429, over the limit'];
  assert.deepEqual(
    rows.filter(({ service }) => service).map(({ path }) => path),
    paths,
  );
  assert.deepEqual(
    rows.map(({ subject }) => subject),
    paths.flatMap(() => ['petstore', 'bare node:http']),
  );
  assert.ok(rows.every(({ perSecond }) => perSecond.median > 0));
  assert.match(readFileSync(page, 'utf8'), /429, over the limit/);
  const left = readdirSync(folder).filter((name) => name.startsWith('petstore-bench-'));
  assert.deepEqual(left, []);
});

test('what it does not know it names, with status 2', () => {
  for (const [word, ...more] of [['lists'], ['--fast'], ['--seconds', 'x', 'list'], ['store']]) {
    const { status, stderr } = bench(word, ...more);
    assert.equal(status, 2, stderr);
    assert.ok(stderr.includes(word), stderr);
  }
});
