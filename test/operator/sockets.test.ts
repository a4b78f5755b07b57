/** The socket between commands and the server, where it goes wrong. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import path from 'node:path';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { listen } from '../../src/operator/sockets.ts';
import { command, program, serving, temporary } from '../program.ts';

const CALLERS_MAX = 64;
/** More than fit into a pipe and a socket. */
const ANIMALS = 20_000;
/** Longer than an answer is waited for. */
const SLOW_MS = 4_000;
const TEST_MAX_MS = 240_000;

test('a connection that cannot be taken is told, every time, and ends nothing', async (t) => {
  const errors: string[] = [];
  const error = (message: string, fields?: Record<string, unknown>) =>
    void errors.push(`${message}: ${(fields!.error as Error).message}`);
  const server = createServer();
  await listen(server, { path: path.join(await temporary(t), 's') }, { info: error, warn: error, error });
  t.after(() => server.close());
  for (const why of ['one', 'two']) server.emit('error', new Error(why));
  assert.deepEqual(errors, ['a connection could not be taken: one', 'a connection could not be taken: two']);
});

test('a caller that is slow is waited for; one that is stopped holds up nobody: no other, no compaction, no end', {
  timeout: TEST_MAX_MS,
}, async (t) => {
  const cwd = await temporary(t);
  await writeFile(path.join(cwd, 'in'), '{"name":"Rex","categoryId":1}\n'.repeat(ANIMALS));
  assert.equal((await program(['import', 'in'], { cwd })).exit, 0);
  const server = await serving(t, ['--first-key', 'pro'], { cwd });
  const [file, ...words] = await command();
  const [slow, ...stopped] = ['export', 'export', 'keys list'].map((line) => {
    const child = spawn(file, [...words, ...line.split(' ')], { cwd, stdio: ['ignore', 'pipe', 'inherit'] });
    t.after(() => child.kill('SIGKILL'));
    return child;
  });
  const ended = once(slow, 'close');
  await wait(SLOW_MS); // nobody reads their pipes
  for (const child of stopped) child.kill('SIGSTOP');
  let lines = 0;
  slow.stdout.on('data', (bytes: Buffer) => (lines += bytes.toString('latin1').split('\n').length - 1));
  assert.deepEqual([...(await ended), lines], [0, null, ANIMALS]);
  for (const line of ['keys list', 'compact', 'verify', 'backup b', 'keys revoke k1']) {
    const { exit, stderr } = await program(line.split(' '), { cwd });
    assert.equal(exit, 0, `${line}: ${stderr}`);
  }
  const { exit, stderr } = await server.stop();
  assert.equal(exit, 0, stderr);
});

test('who connects and says nothing, or nonsense, is nobody’s harm', { timeout: TEST_MAX_MS }, async (t) => {
  const cwd = await temporary(t);
  await serving(t, ['--first-key', 'free'], { cwd });
  const socket = path.join(cwd, 'data', 'admin.sock');
  const open = () =>
    connect(socket)
      .on('error', () => {})
      .resume();
  const callers = Array.from({ length: CALLERS_MAX }, open);
  t.after(() => callers.map((caller) => caller.destroy()));
  await Promise.all(callers.map((caller) => once(caller, 'connect')));
  const { exit, stdout, stderr } = await program(['keys', 'list'], { cwd });
  assert.deepEqual([exit, stdout], [1, '']);
  assert.match(stderr, /^data: the running server cannot be asked/);
  for (const caller of callers) caller.destroy();
  const said = ['no request\r\n\r\n', 'POST /none HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n{}\n'];
  for (const text of [...said, 'POST /keys%20revoke HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nnull']) {
    const caller = open();
    caller.end(text);
    await once(caller, 'close');
  }
  assert.match((await program(['keys', 'list'], { cwd })).stdout, /^k1 .* active$/m);
});

test('a command that fails in the server is told to whoever asked, and has a line in the log', async (t) => {
  const cwd = await temporary(t);
  const server = await serving(t, [], { cwd });
  await mkdir(path.join(cwd, 'data', 'store-000002.jsonl.tmp'));
  const { exit, stderr } = await program(['compact'], { cwd });
  assert.equal(exit, 1);
  assert.match(stderr, /store-000002\.jsonl\.tmp/);
  assert.match((await server.stop()).stderr, /"level":"warn","message":"operator","call":"compact","error":"/);
});

test('a file in the place of the data directory is told as that', async (t) => {
  const cwd = await temporary(t);
  await writeFile(path.join(cwd, 'data'), '');
  for (const line of ['keys list', 'verify', 'export', 'repair', 'compact', 'backup b']) {
    const { exit, stdout, stderr } = await program(line.split(' '), { cwd });
    assert.deepEqual([exit, stdout, stderr], [1, '', 'data: not a directory\n'], line);
  }
});
