/** What is answered while a big store is read. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { command, freePort, program, temporary } from '../program.ts';

/** Enough to be read for some tenths of a second. */
const ANIMALS = 150_000;
const TEST_MAX_MS = 240_000;

test('while a big store is read /healthz is 200 and /readyz is 503', { timeout: TEST_MAX_MS }, async (t) => {
  const cwd = await temporary(t);
  await writeFile(path.join(cwd, 'in'), '{"name":"Rex","categoryId":1}\n'.repeat(ANIMALS));
  assert.equal((await program(['import', 'in'], { cwd })).exit, 0);
  const port = await freePort();
  const [file, ...words] = await command();
  const child = spawn(file, [...words, 'serve', '--port', String(port)], { cwd, stdio: ['ignore', 'pipe', 'ignore'] });
  t.after(() => child.kill('SIGKILL'));
  let ready = false;
  child.stdout.once('data', () => {
    ready = true;
  });
  const ask = async (page: string) =>
    fetch(`http://127.0.0.1:${port}${page}`).then(
      async (reply) => ({ status: reply.status, body: await reply.text() }),
      () => undefined,
    );
  const answers: unknown[] = [];
  while (!ready) {
    const ready = await ask('/readyz');
    if (ready?.status !== 503) continue;
    answers.push([(await ask('/healthz'))?.status, JSON.parse(ready.body).code]);
  }
  assert.ok(answers.length > 0, 'nobody was answered before it was ready');
  for (const answer of answers) assert.deepEqual(answer, [200, 'unavailable']);
  assert.equal((await ask('/readyz'))?.status, 200);
});
