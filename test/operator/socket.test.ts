/** The socket in the data directory: who may use it, and what a slow, stopped or strange other end comes to. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmod, chown, readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { VERSION } from '../../src/operator/version.ts';
import { PATIENT } from '../program.ts';
import { isRoot, NOBODY, workplace } from './workplace.ts';

const MAX_CALLERS = 64;
/** More than fit into a pipe and a socket. */
const ANIMALS = 10_000;

test('who connects to the socket and says nothing, or nonsense, does no harm', async (t) => {
  const { at, run, done, serve } = await workplace(t);
  const server = await serve('--first-key free');
  const open = () =>
    connect(at('data/admin.sock'))
      .on('error', () => {})
      .resume();
  const callers = Array.from({ length: MAX_CALLERS }, open);
  t.after(() => callers.map((caller) => caller.destroy()));
  await Promise.all(callers.map((caller) => once(caller, 'connect')));
  const { exit, stdout, stderr } = await run('keys list');
  assert.deepEqual([exit, stdout], [1, '']);
  assert.match(stderr, /^data: the running server cannot be reached/);
  for (const caller of callers) caller.destroy();
  for (const nonsense of ['no request\r\n\r\n', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nnull']) {
    const caller = open();
    caller.end(nonsense);
    await once(caller, 'close');
  }
  assert.match(await done('keys list'), /^k1 .* active$/m);
  const log = (await server.stop()).stderr;
  assert.equal(log.match(/"message":"a connection for commands was closed: 64 others are open"/g)?.length, 1);
});

test('a wrong call gets an error in words; one of another version is told to restart the server', async (t) => {
  const { at, done, serve } = await workplace(t);
  const server = await serve('--first-key free');
  const call = async (body: string, length = Buffer.byteLength(body)) => {
    const headers = { 'Content-Length': length };
    const req = request({ socketPath: at('data/admin.sock'), method: 'POST', headers });
    req.flushHeaders();
    req.write(body);
    const [res] = (await once(req, 'response')) as [IncomingMessage];
    return JSON.parse(await text(res)) as { result?: { id: string }; error?: { exit: number; message: string } };
  };
  const show = { version: VERSION, command: 'keys show', values: { id: 'k1' } };
  assert.equal((await call(JSON.stringify(show))).result?.id, 'k1');
  const message = 'the body must be {"version", "command", "values"} with its length';
  for (const body of ['', 'x', 'null', '{}', '{"version":1}']) {
    assert.deepEqual(await call(body), { error: { exit: 2, message } }, body);
  }
  assert.deepEqual(await call('{', 1_048_577), { error: { exit: 2, message } }, 'one that is too long is not read');
  const other = await call(JSON.stringify({ ...show, version: '0.9.0' }));
  assert.equal(
    other.error?.message,
    `the running server is version ${VERSION}, this command 0.9.0: restart the server`,
  );
  const unknown = await call(JSON.stringify({ ...show, command: 'keys eat' }));
  assert.deepEqual(unknown.error, { exit: 1, message: 'the running server knows no command keys eat' });
  const empty = { version: VERSION, command: 'import', values: { id: 'x', animals: '[{}]' } };
  assert.match((await call(JSON.stringify(empty))).error!.message, /name is missing/);
  await server.stop();
  assert.match(await done('verify'), /^pets +0$/m, 'what was refused is not in the store');
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
  for (const line of ['keys list', 'compact', 'verify', 'backup b', 'keys revoke k1']) await done(line);
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

test('what listens on the socket is believed only what a server says, and only if it is ours', async (t) => {
  const { at, done, run } = await workplace(t);
  await done('keys create --plan free');
  let [answer, called] = ['', 0];
  const fake = createServer((req, res) => {
    called++;
    req.resume().on('end', () => res.end(answer));
  });
  await once(fake.listen(at('data/admin.sock')), 'listening');
  t.after(() => fake.close());
  await chmod(at('data/admin.sock'), 0o600);
  for (const strange of ['{"error":{"exit":1,"message":{}}}', 'no json']) {
    answer = strange;
    const { exit, stdout, stderr } = await run('keys list');
    assert.deepEqual([exit, stdout], [1, ''], strange);
    assert.match(stderr, /^\S+admin\.sock: what answers there is no petstore server\n$/, strange);
  }
  if (!isRoot) return t.diagnostic('a socket of another user was not tried: only root can make one');
  const before = called;
  await chown(at('data/admin.sock'), NOBODY, NOBODY);
  const { exit, stderr } = await run('keys list');
  assert.deepEqual([exit, called], [1, before]);
  assert.match(stderr, /admin\.sock belongs to another user/);
});
