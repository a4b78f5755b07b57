/** Commands that fall silent: how long the server waits for them, and what becomes of what they have begun. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { SlotLimiter } from '../../src/access/limiter.ts';
import { systemClock as clock } from '../../src/clock.ts';
import { openAdmin } from '../../src/operator/admin.ts';
import { FileStore } from '../../src/store/store.ts';
import { whyNoStrace } from '../faults/strace.ts';
import { command, program, temporary } from '../program.ts';

const CALLERS_MAX = 16;
const SILENCE_MAX_MS = 1_000;
/** Of commands that live: long enough for what else a busy machine does. */
const LONG_SILENCE_MAX_MS = 1_800;
const HUNG_UP =
  'the server hung up, since this command stood still for more than 1 s; what was unfinished there is undone\n';
const WAIT_MAX_MS = 20_000;

async function until(what: string, holds: () => unknown): Promise<void> {
  for (const began = Date.now(); !(await holds()); await wait(10)) assert.ok(Date.now() - began < WAIT_MAX_MS, what);
}

/** A server's end of the admin socket, in this process. It stops a command before that has the answer to a call. */
async function admin(t: TestContext, silenceMaxMs = SILENCE_MAX_MS) {
  let close = async () => {};
  t.after(() => close());
  const cwd = await temporary(t);
  const dir = path.join(cwd, 'data');
  const undone: unknown[] = [];
  const stop = { at: '', process: undefined as ChildProcess | undefined };
  const reached = (what: unknown) => {
    if (what !== stop.at) return;
    stop.process?.kill('SIGSTOP');
    stop.at = '';
  };
  const store = await FileStore.open(dir, { observe: { batch: () => reached('a write') } });
  const log = {
    info: (_message: string, fields?: Record<string, unknown>) => reached(fields?.call),
    warn: (_message: string, fields?: Record<string, unknown>) => undone.push(fields?.undone),
    error: () => {},
    access: () => {},
    close: async () => {},
  };
  const context = { store, dir, limiter: new SlotLimiter({ clock }), clock, environment: 'production' as const };
  const opened = await openAdmin(context, 'test', log, silenceMaxMs);
  close = async () => {
    await opened.close();
    await store.close();
  };
  return { cwd, dir, store, undone, stop };
}

/** The program, as it runs. */
async function running(t: TestContext, args: string[], cwd: string, tracer: string[] = []) {
  const [file, ...words] = [...tracer, ...(await command()), ...args];
  const child = spawn(file, words, { cwd, stdio: ['ignore', 'pipe', 'pipe'] });
  t.after(() => child.kill('SIGKILL'));
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const ended = once(child, 'close').then(([exit]) => ({ exit, stderr }));
  return { child, ended };
}

async function importAnimals(cwd: string, count: number): Promise<void> {
  writeFileSync(path.join(cwd, 'in'), '{"name":"Rex","categoryId":1}\n'.repeat(count));
  assert.equal((await program(['import', 'in'], { cwd })).exit, 0);
}

for (const mayGo of [true, false]) {
  const what = mayGo ? 'lets go of old files' : 'is not believed';
  test(`a backup that stands still ${what}, and fails`, async (t) => {
    const { cwd, dir, store, undone, stop } = await admin(t);
    await importAnimals(cwd, 1);
    stop.at = 'pinFiles';
    const { child, ended } = await running(t, ['backup', 'b'], cwd);
    stop.process = child;
    await until('it is stopped', () => stop.at === '');
    const old = path.join(dir, 'log-000001.jsonl');
    if (mayGo) {
      await store.compact();
      assert.ok(existsSync(old), 'at first it is held');
      await until('it is removed', () => !existsSync(old));
    }
    await until('it is hung up on', () => undone.length > 0);
    assert.deepEqual(undone, [1]);
    child.kill('SIGCONT');
    assert.deepEqual(await ended, { exit: 1, stderr: HUNG_UP });
    assert.deepEqual(readdirSync(cwd).sort(), ['data', 'in'], 'there is no backup, nor a part of one');
  });
}

test('an import that stands still is undone, fails, and keeps no compaction off', async (t) => {
  const { cwd, store, undone, stop } = await admin(t);
  writeFileSync(path.join(cwd, 'in'), '{"name":"Rex","categoryId":1}\n');
  stop.at = 'a write';
  const { child, ended } = await running(t, ['import', 'in'], cwd);
  stop.process = child;
  await until('it is stopped', () => stop.at === '');
  await assert.rejects(store.compact());
  await until('it is hung up on', () => undone.length > 0);
  assert.deepEqual(undone, [1]);
  await until('the store can be compacted', () =>
    store.compact().then(
      () => true,
      () => false,
    ),
  );
  child.kill('SIGCONT');
  assert.deepEqual(await ended, { exit: 1, stderr: HUNG_UP });
  assert.equal(store.read.counts().pets, 0);
});

test('connections on which nothing is said keep commands out for a while only', async (t) => {
  const { cwd, dir } = await admin(t);
  const silent = Array.from({ length: CALLERS_MAX }, () => connect(path.join(dir, 'admin.sock')));
  t.after(() => silent.map((socket) => socket.destroy()));
  await Promise.all(
    silent.map((socket) =>
      once(
        socket.on('error', () => {}),
        'data',
      ),
    ),
  );
  const list = () => program(['keys', 'list'], { cwd });
  assert.equal((await list()).exit, 1);
  await until('commands are heard', async () => (await list()).exit === 0);
});

test('an export that is read slowly is waited for, however long nothing is asked', async (t) => {
  const { cwd, undone } = await admin(t, LONG_SILENCE_MAX_MS);
  const animals = 20_000; // more than a pipe holds
  await importAnimals(cwd, animals);
  const { child, ended } = await running(t, ['export'], cwd);
  await wait(2 * LONG_SILENCE_MAX_MS);
  let lines = 0;
  child.stdout.on('data', (bytes: Buffer) => (lines += bytes.toString('latin1').split('\n').length - 1));
  assert.deepEqual(await ended, { exit: 0, stderr: '' });
  assert.deepEqual([lines, undone], [animals, []]);
});

test('a backup holds the files for as long as it takes', { skip: whyNoStrace() ?? false }, async (t) => {
  const { cwd, undone } = await admin(t, LONG_SILENCE_MAX_MS);
  await importAnimals(cwd, 1);
  const slowly = `inject=fdatasync:delay_enter=${2 * LONG_SILENCE_MAX_MS * 1_000}`;
  const strace = ['strace', '-f', '-qq', '-o', '/dev/null', '-e', 'trace=fdatasync', '-e', slowly];
  const { child, ended } = await running(t, ['backup', 'b'], cwd, strace);
  child.stdout.resume();
  assert.deepEqual(await ended, { exit: 0, stderr: '' });
  assert.deepEqual([existsSync(path.join(cwd, 'b')), undone], [true, []]);
});
