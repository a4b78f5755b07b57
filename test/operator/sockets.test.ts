/** The sockets between commands and the server, where they go wrong. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { listen } from '../../src/operator/listen.ts';
import { closeAfter } from '../../src/operator/serve.ts';
import { connectTo, socketPlace } from '../../src/operator/socket.ts';
import { program, serving, temporary } from '../program.ts';

const CALLERS_MAX = 16;

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

test('a command beyond those that the server hears is told so', async (t) => {
  const cwd = await temporary(t);
  await serving(t, ['--first-key', 'free'], { cwd });
  const idle = Array.from({ length: CALLERS_MAX }, () => connect(path.join(cwd, 'data', 'admin.sock')));
  t.after(() => idle.map((socket) => socket.destroy()));
  await Promise.all(idle.map((socket) => once(socket, 'data')));
  const { exit, stdout, stderr } = await program(['keys', 'list'], { cwd });
  assert.deepEqual([exit, stdout], [1, '']);
  assert.equal(stderr, 'the server is busy with 16 other commands; try again when one of them has ended\n');
  idle[0].destroy();
  assert.match((await program(['keys', 'list'], { cwd })).stdout, /k1/);
});

test('a file in the place of the data directory is told as that', async (t) => {
  const cwd = await temporary(t);
  await writeFile(path.join(cwd, 'data'), '');
  for (const line of ['keys list', 'verify', 'export']) {
    assert.deepEqual(await program(line.split(' '), { cwd }), {
      exit: 1,
      signal: null,
      stdout: '',
      stderr: 'data is not a directory\n',
    });
  }
});

test('a store that does not close hides no failure of the start', async () => {
  const log = new Told();
  const store = { close: () => Promise.reject(new Error('EIO')) };
  await assert.rejects(closeAfter(new Error('the port is taken'), store, log), /the port is taken/);
  assert.deepEqual(log.errors, ['the store could not be closed: EIO']);
});
