/** The harness itself, for as long as its shortest run takes. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Results } from '../../bench/bench.ts';
import { wrk } from '../../bench/load.ts';

const MAIN = fileURLToPath(new URL('../../bench/main.ts', import.meta.url));
const folder = mkdtempSync(path.join(os.tmpdir(), 'petstore-bench-test-'));
after(() => rmSync(folder, { recursive: true }));

function bench(...args: string[]) {
  const options = { env: { ...process.env, TMPDIR: folder }, encoding: 'utf8' } as const;
  return spawnSync(process.execPath, ['--import', 'tsx', MAIN, ...args], options);
}

const skip = wrk === undefined && 'wrk is not installed';
test('the harness measures the service beside others, and leaves nothing behind', { skip }, () => {
  const page = path.join(folder, 'report.html');
  const { status, stdout, stderr } = bench('create', '--rounds', '1', '--no-peers', '--json', '--report', page);
  assert.equal(status, 0, stderr);
  const { rows, reached, notes }: Results = JSON.parse(stdout);
  const failed = notes.filter((note) => note.includes('FAILED'));
  assert.deepEqual(failed, []);
  const subjects = rows.filter(({ perSecond }) => perSecond).map(({ subject }) => subject);
  const [own, bare] = ['petstore', 'bare node:http'];
  assert.deepEqual(subjects, [own, bare, 'smallest durable', own, bare]);
  assert.ok(rows.every((row) => row.latency!.p50 > 0 && row.latency!.p999 >= row.latency!.p50));
  for (const aim of ['create-bare', 'create-crowd', 'create-durable']) {
    assert.ok(reached.find((one) => one.aim === aim)!.value!.median > 0, aim);
  }
  assert.equal(reached.find(({ aim }) => aim === 'create-sqlite')!.missing, 'left out');
  assert.match(readFileSync(page, 'utf8'), /smallest durable server/);
  const left = readdirSync(folder).filter((name) => name.startsWith('petstore-bench-'));
  assert.deepEqual(left, []);
});

test('what it does not know it names, with status 2', () => {
  for (const [word, ...more] of [['lists'], ['--fast'], ['--seconds', 'x', 'list']]) {
    const { status, stderr } = bench(word, ...more);
    assert.equal(status, 2, stderr);
    assert.ok(stderr.includes(word), stderr);
  }
});

test('two servers that are loaded at once are compared by their own CPU time', { skip }, () => {
  const { status, stdout, stderr } = bench('get', '--rounds', '1', '--no-peers', '--json', '--report', '/dev/null');
  assert.equal(status, 0, stderr);
  const { figures, reached }: Results = JSON.parse(stdout);
  const [{ value }] = figures.filter(({ name }) => name.endsWith('both loaded at once'));
  const { byCpu } = reached.find(({ aim }) => aim === 'get-bare')!;
  assert.equal(value.split(' ')[0], byCpu!.toFixed(2));
  assert.ok(byCpu! > 0.1 && byCpu! < 10, value);
});
