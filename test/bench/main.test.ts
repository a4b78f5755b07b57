import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Results } from '../../bench/results.ts';

const MAIN = fileURLToPath(new URL('../../bench/main.ts', import.meta.url));
const folder = mkdtempSync(path.join(os.tmpdir(), 'petstore-bench-test-'));
after(() => rmSync(folder, { recursive: true }));

function bench(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const options = { env: { ...process.env, TMPDIR: folder }, timeout: 60_000 };
  return new Promise((resolve) => {
    execFile(process.execPath, ['--import', 'tsx', MAIN, ...args], options, (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr });
    });
  });
}

test('the harness measures the service itself against bare node:http, and leaves nothing behind', async () => {
  const page = path.join(folder, 'report.html');
  const flags = ['--seconds', '0.1', '--rounds', '1', '--no-peers', '--json', '--report', page];
  const { code, stdout, stderr } = await bench('create', ...flags);
  assert.equal(code, 0, stderr);
  const { rows, reached, notes }: Results = JSON.parse(stdout);
  assert.deepEqual(
    notes.filter((note) => note.includes('FAILED')),
    [],
  );
  const subjects = rows.filter(({ perSecond }) => perSecond).map(({ subject }) => subject);
  assert.deepEqual(subjects, ['petstore', 'bare node:http']);
  assert.ok(rows.every((row) => row.latency!.p50 > 0 && row.latency!.p999 >= row.latency!.p50));
  assert.ok(reached.find(({ aim }) => aim === 'create-bare')!.value!.median > 0);
  assert.match(reached.find(({ aim }) => aim === 'create-sqlite')!.missing!, /SQLite/);
  assert.match(readFileSync(page, 'utf8'), /<svg /);
  const left = readdirSync(folder).filter((name) => name.startsWith('petstore-bench-'));
  assert.deepEqual(left, []);
});

test('what it does not know it names, with status 2', async () => {
  const [suite, option, value] = await Promise.all([bench('lists'), bench('--fast'), bench('list', '--seconds', 'x')]);
  assert.deepEqual([suite.code, option.code, value.code], [2, 2, 2]);
  assert.match(suite.stderr, /no suite lists/);
  assert.match(option.stderr, /--fast/);
  assert.match(value.stderr, /--seconds/);
});
