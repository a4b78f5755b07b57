/** The socket in the data directory: what a wrong call, and a slow, stopped or killed other end come to. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { digestOf } from '../../src/access/keys.ts';
import { VERSION } from '../../src/operator/program.ts';
import { PATIENT } from '../program.ts';
import { until } from '../until.ts';
import { missing, workplace } from './workplace.ts';

/** More than fit into a pipe and a socket. */
const ANIMALS = 10_000;

/** A call with curl's means: one request, and the reply as it comes. */
async function call(socketPath: string, path: string, method = 'GET', body = '') {
  const req = request({ socketPath, path, method }).end(body);
  const [res] = (await once(req, 'response')) as [IncomingMessage];
  return { status: res.statusCode, reply: JSON.parse(await text(res)) };
}

test('a command is a path, its parameters are a query; what is wrong is told in words', async (t) => {
  const { at, serve } = await workplace(t);
  await serve('--first-key free');
  const socket = at('data/admin.sock');
  const made = await call(socket, '/keys/create?plan=enterprise&perMinute=5&perDay=50&name=A%20b', 'POST');
  assert.deepEqual([made.status, made.reply.id, made.reply.perDay, made.reply.name], [200, 'k2', 50, 'A b']);
  assert.match(made.reply.key, /^ps_live_/);
  const shown = await call(socket, `/keys/find?digest=${digestOf(made.reply.key)}`);
  assert.deepEqual([shown.status, shown.reply.perMinute, 'key' in shown.reply], [200, 5, false]);
  const listed = await call(socket, '/keys/list');
  assert.deepEqual(
    listed.reply.map(({ id }: { id: string }) => id),
    ['k1', 'k2'],
  );
  for (const [path, method, status, fault] of [
    ['/keys/find?digest=7', 'GET', 400, 'digest cannot be "7": give the SHA-256 of a key, as hex'],
    ['/keys/list?data=x', 'GET', 400, 'there is no parameter "data"'],
    ['/keys/plan?id=k1&plan=pro&perDya=1', 'POST', 400, 'there is no parameter "perDya"; did you mean perDay?'],
    ['/keys/lits', 'GET', 400, `the running server (version ${VERSION}) has no /keys/lits; did you mean /keys/list?`],
    ['/keys/plan?id=k1&plan=pro&perDay=1', 'POST', 400, 'only the enterprise plan takes --per-minute and --per-day'],
    ['/keys/revoke?id=k1', 'GET', 400, '/keys/revoke takes POST'],
    ['/keys/lift?id=k9', 'POST', 500, 'there is no key k9'],
    ['/import', 'POST', 400, 'digest is missing: give a name of the input'],
    ['/keys', 'GET', 400, 'the running server (version '],
    ['/verify', 'GET', 400, 'the running server (version '],
    ['/serve', 'POST', 400, 'the running server (version '],
  ] as const) {
    const refused = await call(socket, path, method);
    assert.deepEqual([refused.status, refused.reply.exit], [status, status === 500 ? 1 : 2], path);
    assert.ok(refused.reply.error.startsWith(fault), refused.reply.error);
  }
  const unread = await call(socket, '/keys/rotate?id=k1', 'POST', '{"grace":"1h"}');
  assert.deepEqual([unread.status, unread.reply.error], [400, '/keys/rotate reads no body: use the query']);
  const batches = '{"pets":[{"name":"a","categoryId":1}]}\n{"pets":[{"name":"b"}]}';
  const bad = await call(socket, '/import?digest=x&animals=2&bytes=40', 'POST', batches);
  const reason = /^pets\.0: categoryId: is missing .*\)$/;
  assert.deepEqual([bad.status, bad.reply.exit, reason.test(bad.reply.error)], [400, 2, true], bad.reply.error);
});

test('the calls of the operating guide work as they stand', { skip: missing('curl') }, async (t) => {
  const { cwd, serve } = await workplace(t);
  await serve('--first-key free');
  const guide = readFileSync(new URL('../../docs/operating.md', import.meta.url), 'utf8');
  const lines = guide.match(/^curl --unix-socket .*$/gm)!;
  const replies = lines.map((line) => JSON.parse(execFileSync('sh', ['-c', `${line} -sS`], { cwd, encoding: 'utf8' })));
  assert.deepEqual([replies.length, replies[0][0].id, replies[1].name], [2, 'k1', 'Shop front']);
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
  await until(isConnected);
  await server.kill();
  const { exit, stdout, stderr } = await called;
  assert.deepEqual([exit, stdout], [1, '']);
  assert.match(stderr, /^data: the running server cannot be reached|^the server ended before it answered; look/);
});

test('64 commands at a time: one more is closed at once, and taken when another has ended', async (t) => {
  const { at, serve } = await workplace(t);
  await serve('--first-key free');
  const held: Socket[] = [];
  t.after(() => held.forEach((socket) => void socket.destroy())); // biome-ignore format: one way
  const connected = async () => {
    const socket = connect(at('data/admin.sock')).on('error', () => {});
    await once(socket, 'connect');
    return socket;
  };
  for (let n = 0; n < 64; n++) held.push(await connected());
  const listed = () => call(at('data/admin.sock'), '/keys/list').then(({ status }) => status);
  await assert.rejects(listed(), 'the 65th is closed');
  assert.ok(
    held.every(({ destroyed, readableEnded }) => !destroyed && !readableEnded),
    'the others are not',
  );
  const ended = held.pop()!;
  ended.end();
  await once(ended.resume(), 'close');
  assert.equal(await listed(), 200);
});
