/** The program itself, for as long as its shortest run takes. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Results } from '../../bench/results.ts';

const MAIN = fileURLToPath(new URL('../../bench/main.ts', import.meta.url));
const folder = mkdtempSync(path.join(os.tmpdir(), 'petstore-bench-test-'));
after(() => rmSync(folder, { recursive: true }));

/** On a PATH with no other program than Node. */
const env = { ...process.env, TMPDIR: folder, PATH: path.dirname(process.execPath) };

function bench(...args: string[]) {
  return spawnSync(process.execPath, ['--import', 'tsx', MAIN, ...args], { env, encoding: 'utf8' });
}

const leftFolders = () => readdirSync(folder).filter((name) => name.startsWith('petstore-bench-'));

test('it measures the service beside bare node:http with Node alone, and leaves nothing behind', () => {
  const { status, stdout, stderr } = bench('create', 'limit', '--rounds', '2', '--json');
  assert.equal(status, 0, stdout + stderr);
  const { rows }: Results = JSON.parse(stdout);
  const paths = [
    'create, durable',
    'create, durable, 256 connections',
    '429, over the limit',
    'admitted, 10,000 keys at random',
  ];
  assert.deepEqual(
    rows.filter(({ service }) => service).map(({ path }) => path),
    paths,
  );
  assert.deepEqual(
    rows.map(({ subject }) => subject),
    paths.flatMap(() => ['petstore', 'bare node:http']),
  );
  assert.ok(rows.every(({ perSecond }) => perSecond.median > 0));
  assert.deepEqual(leftFolders(), []);
});

test('it serves for load generators of one’s own, without limits, and ends at ^C, which comes twice', async () => {
  const child = spawn(process.execPath, ['--import', 'tsx', MAIN, 'serve'], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exit = once(child, 'exit');
  let printed = '';
  for await (const text of child.stdout) {
    printed += text;
    if (!printed.includes('^C ends')) continue;
    const headers = { Authorization: `Bearer ${/ps_live_\w+/.exec(printed)![0]}` };
    const commands = [...printed.matchAll(/'(http\S+)' # (petstore|bare node:http), process \d+/g)];
    assert.deepEqual(
      commands.map(([, , name]) => name),
      ['petstore', 'bare node:http', 'petstore', 'bare node:http'],
    );
    const replies = await Promise.all(commands.map(([, address]) => fetch(address, { headers })));
    assert.equal(replies[0].headers.get('x-ratelimit-limit'), '1000000000');
    const [list, sameList, animal, sameAnimal] = await Promise.all(replies.map((reply) => reply.text()));
    assert.deepEqual([sameList, sameAnimal], [list, animal]);
    assert.notEqual(animal, list);
    child.kill('SIGINT');
    setTimeout(() => child.kill('SIGINT'), 20); // npm passes on what the terminal has sent already
  }
  assert.deepEqual(await exit, [0, null]);
  assert.deepEqual(leftFolders(), []);
});

test('what it does not know it names, with status 2', () => {
  for (const [word, ...more] of [['lists'], ['--fast'], ['--rounds', 'x', 'list']]) {
    const { status, stderr } = bench(word, ...more);
    assert.equal(status, 2, stderr);
    assert.ok(stderr.includes(word), stderr);
  }
});
