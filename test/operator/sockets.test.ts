/** The sockets between commands and the server, where they go wrong. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { listen } from '../../src/operator/listen.ts';
import { connectTo, socketPlace } from '../../src/operator/socket.ts';
import { program, serving, temporary } from '../program.ts';

const CALLERS_MAX = 16;
const LINE_MAX_BYTES = 1_048_576;
/** A line that is not hung up on would be waited for. */
const HANG_UP_MAX_MS = 20_000;
const FREE_MAX_MS = 5_000;
const RETRY_MS = 50;
/** Of one caller, in one write. */
const CALLS = 20;

class Told {
  readonly errors: string[] = [];
  info() {}
  warn() {}
  access() {}
  error(message: string, fields?: Record<string, unknown>) {
    this.errors.push(`${message}: ${(fields!.error as Error).message}`);
  }
}

async function listener(t: TestContext, dir: string, log: Told) {
  const place = socketPlace(dir);
  const server = createServer((socket) => socket.on('error', () => {}));
  await listen(server, { path: place.path }, log);
  t.after(() => {
    server.close();
    place.close();
  });
  return server;
}

test('a connection that cannot be taken is told, every time, and ends nothing', async (t) => {
  const log = new Told();
  const server = await listener(t, await temporary(t), log);
  for (const why of ['one', 'two']) server.emit('error', new Error(why));
  assert.deepEqual(log.errors, ['a connection could not be taken: one', 'a connection could not be taken: two']);
});

test('a connection that breaks later does not close what was closed already', async (t) => {
  const dir = path.join(await temporary(t), 'd'.repeat(150));
  await mkdir(dir);
  await listener(t, dir, new Told());
  const socket = (await connectTo(dir))!;
  t.after(() => socket.destroy());
  assert.doesNotThrow(() => socket.emit('error', new Error('reset')));
});

/** Takes every place that the server has for callers, and tells what the server said to each of them. */
async function takePlaces(t: TestContext, cwd: string) {
  const callers = Array.from({ length: CALLERS_MAX }, () => connect(path.join(cwd, 'data', 'admin.sock')));
  t.after(() => callers.map((socket) => socket.destroy()));
  const greetings = await Promise.all(callers.map(async (socket) => String(await once(socket, 'data'))));
  return { callers, greetings };
}

test('a command beyond those that the server hears is told so', async (t) => {
  const cwd = await temporary(t);
  await serving(t, ['--first-key', 'free'], { cwd });
  const { callers: idle } = await takePlaces(t, cwd);
  const { exit, stdout, stderr } = await program(['keys', 'list'], { cwd });
  assert.deepEqual([exit, stdout], [1, '']);
  assert.equal(stderr, 'the server is busy with 16 other commands; try again when one of them has ended\n');
  idle[0].destroy();
  assert.match((await program(['keys', 'list'], { cwd })).stdout, /k1/);
});

test('callers that hang up leave their places free, and the calls that were left are not run', async (t) => {
  const cwd = await temporary(t);
  await serving(t, [], { cwd });
  const { callers } = await takePlaces(t, cwd);
  const call = `${JSON.stringify({ call: 'createKey', args: { plan: 'free', name: 'x' } })}\n`;
  for (const socket of callers) socket.write(call.repeat(CALLS));
  await Promise.all(callers.map((socket) => once(socket, 'data'))); // the first call has run, the others were read
  for (const socket of callers) socket.destroy();
  const end = performance.now() + FREE_MAX_MS;
  for (let areFree = false; !areFree; await wait(RETRY_MS)) {
    const again = await takePlaces(t, cwd);
    areFree = again.greetings.every((greeting) => greeting.startsWith('{"petstore":'));
    for (const socket of again.callers) socket.destroy();
    assert.ok(areFree || performance.now() < end, again.greetings.join(''));
  }
  const { stdout } = await program(['keys', 'list', '--json'], { cwd });
  const keys = JSON.parse(stdout).length;
  assert.ok(keys >= CALLERS_MAX && keys < CALLERS_MAX * CALLS, `${keys} keys were made`);
});

test('a line longer than any command says is hung up on, without waiting for its end', {
  timeout: HANG_UP_MAX_MS,
}, async (t) => {
  const cwd = await temporary(t);
  await serving(t, [], { cwd });
  const socket = connect(path.join(cwd, 'data', 'admin.sock'))
    .on('error', () => {})
    .resume();
  t.after(() => socket.destroy());
  socket.write('x'.repeat(LINE_MAX_BYTES + 1));
  await once(socket, 'close');
  assert.equal((await program(['keys', 'list'], { cwd })).exit, 0, 'the others are heard');
});

test('a command that fails in the server is told to whoever asked, and has a line in the log', async (t) => {
  const cwd = await temporary(t);
  const server = await serving(t, [], { cwd });
  await writeFile(path.join(cwd, 'data', 'log-000002.jsonl'), '');
  const { exit, stderr } = await program(['compact'], { cwd });
  assert.deepEqual([exit, stderr], [1, 'data/log-000002.jsonl: file already exists\n']);
  const { stderr: log } = await server.stop();
  assert.match(
    log,
    /"level":"warn","message":"operator","call":"compactStore","error":"data\/log-000002\.jsonl: file /,
  );
});

test('a file in the place of the data directory is told as that', async (t) => {
  const cwd = await temporary(t);
  await writeFile(path.join(cwd, 'data'), '');
  for (const line of ['keys list', 'verify', 'export', 'repair']) {
    assert.deepEqual(await program(line.split(' '), { cwd }), {
      exit: 1,
      signal: null,
      stdout: '',
      stderr: 'data is not a directory\n',
    });
  }
});
