import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { command, temporary } from '../program.ts';

const noScript = spawnSync('script', ['--version']).error && 'there is no script program, which makes terminals';

test('on a terminal an import draws a bar and takes it away again', { skip: noScript ?? false }, async (t) => {
  const cwd = await temporary(t);
  await writeFile(path.join(cwd, 'in'), '{"name":"Rex","categoryId":1}\n'.repeat(40_000));
  const words = [...(await command()), 'import', 'in'].map((word) => `'${word}'`).join(' ');
  const { stdout, status } = spawnSync('script', ['-qec', words, '/dev/null'], { cwd, encoding: 'utf8' });
  assert.equal(status, 0, stdout);
  assert.match(stdout, /\rchecking in \[#*\.*\] +\d+ %/);
  assert.match(stdout, /\rimport \[#*\.*\] +\d+ %/);
  assert.match(stdout, /\r\x1b\[K40,000 animals imported, ids 1 to 40000\r\n$/);
});
