/** The socket in the data directory: what a wrong call, and a slow, stopped or killed other end come to. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { VERSION } from '../../src/operator/version.ts';
import { PATIENT } from '../program.ts';
import { workplace } from './workplace.ts';

/** More than fit into a pipe and a socket. */
const ANIMALS = 10_000;

test('a wrong call gets an error in words; one of another version is told to restart the server', async (t) => {
  const { at, serve } = await workplace(t);
  await serve('--first-key free');
  const call = async (body: string, length = Buffer.byteLength(body)) => {
    const req = request({ socketPath: at('data/admin.sock'), method: 'POST', headers: { 'Content-Length': length } });
    req.write(body);
    const [res] = (await once(req, 'response')) as [IncomingMessage];
    return JSON.parse(await text(res)) as { result?: { id: string }; error?: { exit: number; message: string } };
  };
  const show = { version: VERSION, command: 'keys show', values: { id: 'k1' } };
  assert.equal((await call(JSON.stringify(show))).result?.id, 'k1');
  const message = 'the body must be {"version", "command", "values"} with its length';
  for (const body of ['x', '{"version":1}']) assert.deepEqual(await call(body), { error: { exit: 2, message } });
  assert.deepEqual(await call('{', 1_048_577), { error: { exit: 2, message } }, 'one that is too long is not read');
  const other = await call(JSON.stringify({ ...show, version: '0.9.0' }));
  const restart = `the running server is version ${VERSION}, this command 0.9.0: restart the server`;
  assert.equal(other.error?.message, restart);
});

test('a slow reader is waited for; one that is stopped holds up nobody', { timeout: 240_000 }, async (t) => {
  const { animals, done, serve, spawn } = await workplace(t);
  await animals(ANIMALS);
  await done('import in');
  const server = await serve('--first-key pro');
  const calls = ['export', 'export', 'backup -'].map((line) => spawn(line, ['ignore', 'pipe', 'inherit'], PATIENT));
  const [slow, ...stopped] = await Promise.all(calls);
  await wait(500); // nobody reads their pipes
  for (const { child } of stopped) child.kill('SIGSTOP');
  let lines = 0;
  slow.child.stdout!.on('data', (bytes: Buffer) => (lines += bytes.toString('latin1').split('\n').length - 1));
  assert.deepEqual([...(await slow.ended), lines], [0, null, ANIMALS]);
  for (const line of ['compact', 'backup b', 'keys revoke k1']) await done(line);
  const { exit, stderr } = await server.stop();
  assert.equal(exit, 0, stderr);
  for (const line of stderr.trimEnd().split('\n')) JSON.parse(line);
});

test('a server that is killed under a command: the command fails, and says what to do', async (t) => {
  const { at, run, serve } = await workplace(t);
  const server = await serve();
  server.process.kill('SIGSTOP');
  const called = run('keys create --plan free', { env: PATIENT });
  const isConnected = async () => (await readFile('/proc/net/unix', 'latin1')).split(at('data/admin.sock')).length > 2;
  while (!(await isConnected())) await wait(20);
  await server.kill();
  const { exit, stdout, stderr } = await called;
  assert.deepEqual([exit, stdout], [1, '']);
  assert.match(stderr, /^data: the running server cannot be reached|^the server ended before it answered; look/);
});
