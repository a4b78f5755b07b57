import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { ANIMALS, showProgress } from '../../src/operator/progress.ts';
import { command, temporary } from '../program.ts';

/** What stands on a terminal when so much is done after so long. */
function drawn(t: TestContext, done: number, total: number, ms: number, unit?: typeof ANIMALS): string {
  const lines: string[] = [];
  const [stderr, stdout] = [process.stderr.isTTY, process.stdout.isTTY];
  [process.stderr.isTTY, process.stdout.isTTY] = [true, false];
  let now = 1_000;
  t.mock.method(performance, 'now', () => now);
  t.mock.method(process.stderr, 'write', (text: string) => lines.push(text) > 0);
  try {
    const progress = showProgress('work', unit);
    now += ms;
    progress.at(done, total);
    progress.at(done, total);
    progress.end();
  } finally {
    t.mock.restoreAll();
    [process.stderr.isTTY, process.stdout.isTTY] = [stderr, stdout];
  }
  assert.deepEqual(
    [lines.length, lines[1]],
    [2, '\r\x1b[K'],
    'it is not drawn anew at once, and taken away in the end',
  );
  return /^\r(.*)\x1b\[K$/.exec(lines[0])![1];
}

test('a line of progress tells share, rate and time left', (t) => {
  const mebibyte = 1_048_576;
  assert.equal(drawn(t, 0, 100, 0), `work [${'.'.repeat(24)}]   0 %`);
  assert.equal(
    drawn(t, 50 * mebibyte, 200 * mebibyte, 10_000),
    `work [${'#'.repeat(6)}${'.'.repeat(18)}]  25 %  5.0 MiB/s  0:30 left`,
  );
  assert.equal(
    drawn(t, 100_000, 1_000_000, 10_000, ANIMALS),
    `work [##${'.'.repeat(22)}]  10 %  10,000 animals/s  1:30 left`,
  );
  assert.match(drawn(t, 300, 200, 1_000, ANIMALS), /100 % .* 0:00 left$/, 'more than was foreseen');
  assert.match(drawn(t, 0, 0, 1_000), /100 %$/);
});

const noScript = spawnSync('script', ['--version']).error && 'there is no script program, which makes terminals';

test('on a terminal an import draws a bar and takes it away again', { skip: noScript ?? false }, async (t) => {
  const cwd = await temporary(t);
  await writeFile(path.join(cwd, 'in'), '{"name":"Rex","categoryId":1}\n'.repeat(40_000));
  const words = [...(await command()), 'import', 'in'].map((word) => `'${word}'`).join(' ');
  const { stdout, status } = spawnSync('script', ['-qec', words, '/dev/null'], { cwd, encoding: 'utf8' });
  assert.equal(status, 0, stdout);
  assert.match(stdout, /\rchecking in \[#*\.*\] +\d+ %/);
  assert.match(stdout, /\radding \[#*\.*\] +\d+ %/);
  assert.match(stdout, /\r\x1b\[K40,000 animals added, ids 1 to 40000; 0 lines skipped\r\n$/);
});
