/** What an import into a running server costs those who ask meanwhile. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { workplace } from './workplace.ts';

const ANIMALS = 200_000;
const PAUSE_MAX_MS = 20;

test('no request waits longer than 20 ms for an import, as far as that is of our doing', async (t) => {
  const { at: file, done, serve, headers: headersOf } = await workplace(t);
  const pauses = file('pauses');
  const NODE_OPTIONS = `--import ${path.join(import.meta.dirname, 'pauses.mjs')}`;
  const server = await serve('', { env: { NODE_OPTIONS, PAUSES_FILE: pauses } });
  const longestMs = async () => {
    await rm(pauses, { force: true });
    server.process.kill('SIGUSR2');
    while (!existsSync(pauses)) await wait(10);
    return Number(await readFile(pauses, 'utf8'));
  };
  const headers = await headersOf();
  const line = (_: unknown, at: number) => `{"name":"animal ${at}","categoryId":${at % 9}}\n`;
  await writeFile(file('in'), Array.from({ length: ANIMALS }, line).join(''));

  let isDone = false;
  const asking = (async () => {
    for (let at = 0; !isDone; at++) {
      const post = { method: 'POST', body: '{"name":"asked","categoryId":1}' };
      const reply = await fetch(`${server.url}/pets`, { headers, ...(at % 4 === 0 ? post : {}) });
      assert.ok(reply.ok, await reply.text());
      await wait(2);
    }
  })();
  await longestMs();
  await done('import in');
  const longest = await longestMs();
  isDone = true;
  await asking;
  t.diagnostic(`the server worked at most ${longest.toFixed(1)} ms between two turns`);
  assert.ok(longest < PAUSE_MAX_MS, `${longest} ms`);
});
