/** What stands in the way of a command or a start, and how it is told; and what stands in nobody's. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import { connect, createServer } from 'node:net';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { isLoopback, listen, ownNames } from '../../src/operator/sockets.ts';
import { command, PATIENT } from '../program.ts';
import { workplace } from './workplace.ts';

const NOBODY = 65_534;
/** What a server has for commands. */
const CALLERS_MAX = 64;
/** More than fit into a pipe and a socket. */
const ANIMALS = 20_000;
/** Longer than an answer is waited for. */
const SLOW_MS = 4_000;

test('what stands in the way is told in a sentence', async (t) => {
  const { at, run } = await workplace(t);
  await writeFile(at('file'), '');
  await symlink('none', at('nowhere'));
  await mkdir(at('taken/admin.sock'), { recursive: true, mode: 0o700 });
  await writeFile(at('table.csv'), 'name,categoryId\nRex,1\n');
  const long = 'd'.repeat(150);
  for (const [line, said] of [
    ['serve --data file', /^file: not a directory$/],
    ['serve --data file/x', /^file\/x: not a directory$/],
    ['serve --data nowhere', /^nowhere: this is a link that leads nowhere$/],
    ['serve --data taken', /taken\/admin\.sock is in the place of the socket for commands: remove it by hand$/],
    ['serve --seed none', /^seed none: no such file or directory$/],
    [`keys create --plan free --data ${long}`, /admin\.sock is too long for a socket: at most 107 bytes$/],
    ['keys list --data file', /^file: not a directory$/],
    ['backup b --data file', /^file: not a directory$/],
    ['backup b --data none', /^there is no store in none$/],
    ['export --data none', /^there is no store in none$/],
    ['restore none --data new', /^none: no such file or directory$/],
    ['import table.csv', /^table\.csv looks like CSV; import takes JSON lines such as \{.*\}$/],
    ['import .', /^\. is a directory$/],
    ['import none', /^none: no such file or directory$/],
  ] as const) {
    const { exit, stdout, stderr } = await run(line.replace('serve', 'serve --port 0'));
    assert.deepEqual([exit, stdout], [1, ''], line);
    // A server tells it in one line of log, without a stack.
    const { level, message, error } = line.startsWith('serve')
      ? JSON.parse(stderr)
      : { level: 'error', message: stderr.replace(/\n$/, '') };
    assert.deepEqual([level, error], ['error', undefined]);
    assert.match(message, said);
  }
});

/** What starts a program as somebody else. */
const AS_NOBODY = ['setpriv', `--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups'];
const noOther = spawnSync(AS_NOBODY[0], [...AS_NOBODY.slice(1), process.execPath, '-e', '0']).status !== 0;
const skip = noOther && `nobody else may run ${process.execPath} for us`;

test('what one may not read is told in a sentence', { skip }, async (t) => {
  const { cwd, at, run } = await workplace(t);
  const [, program] = await command();
  if (program !== undefined) await chmod(path.dirname(program), 0o755);
  await chmod(cwd, 0o755);
  await mkdir(at('closed'), { mode: 0o700 });
  for (const [line, said] of [
    ['serve --port 0 --data closed', /"message":"closed: permission denied"\}\n$/],
    ['serve --port 0 --data closed/d', /"message":"closed\/d: permission denied"\}\n$/],
    ['keys list --data closed', /^closed: permission denied\n$/],
  ] as const) {
    const { exit, stderr } = await run(line, { before: AS_NOBODY });
    assert.equal(exit, 1, line);
    assert.match(stderr, said);
  }
});

test('a connection that cannot be taken is told, once a minute, and ends nothing', async (t) => {
  let now = Math.ceil(performance.now()); // whole, so that a minute is a minute after the sums
  t.mock.method(performance, 'now', () => now);
  const { at } = await workplace(t);
  const errors: string[] = [];
  const error = (message: string, fields?: Record<string, unknown>) =>
    void errors.push(`${message}: ${(fields!.error as Error).message}`);
  const server = createServer();
  await listen(server, { path: at('s') }, { info: error, warn: error, error });
  t.after(() => server.close());
  for (const [why, ms] of [
    ['one', 0],
    ['two', 59_999],
    ['three', 1],
  ] as const) {
    now += ms;
    server.emit('error', new Error(why));
  }
  assert.deepEqual(errors, ['a connection could not be taken: one', 'a connection could not be taken: three']);
});

test('who connects to the server’s socket and says nothing, or nonsense, is nobody’s harm', async (t) => {
  const { at, run, done, serve } = await workplace(t);
  const server = await serve('--first-key free');
  const open = () =>
    connect(at('data/admin.sock'))
      .on('error', () => {})
      .resume();
  const callers = Array.from({ length: CALLERS_MAX }, open);
  t.after(() => callers.map((caller) => caller.destroy()));
  await Promise.all(callers.map((caller) => once(caller, 'connect')));
  const { exit, stdout, stderr } = await run('keys list');
  assert.deepEqual([exit, stdout], [1, '']);
  assert.match(stderr, /^data: the running server cannot be asked/);
  for (const caller of callers) caller.destroy();
  const post = (call: string, body: string) =>
    `POST ${call} HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  for (const nonsense of ['no request\r\n\r\n', post('/none', '{}\n'), post('/keys%20revoke', 'null')]) {
    const caller = open();
    caller.end(nonsense);
    await once(caller, 'close');
  }
  assert.match(await done('keys list'), /^k1 .* active$/m);

  const [file, away] = [at('data/store-000001.jsonl'), at('away')];
  await rename(file, away); // and what fails there is told to whoever asked, and in the log
  const failed = await run('compact');
  assert.deepEqual([failed.exit, /store-000001\.jsonl/.test(failed.stderr)], [1, true]);
  await rename(away, file);
  const log = (await server.stop()).stderr;
  assert.match(log, /"level":"warn","message":"operator","call":"compact","error":"/);
  assert.equal(log.match(/"message":"a connection for commands was closed: 64 others are open"/g)?.length, 1);
});

test('a client of the socket that is no petstore gets a whole answer, in words where it asks wrongly', {
  timeout: 240_000,
}, async (t) => {
  const { at, done, serve } = await workplace(t);
  const server = await serve('--first-key free');
  /** `body` as curl sends it: in pieces if it comes from a pipe (`-T -`), or whole (`-d`). */
  const ask = async (body: string, headers = {}, path = '/keys-show') => {
    const asked = request({ socketPath: at('data/admin.sock'), method: 'POST', path, headers });
    asked.end(body);
    const [answer] = (await once(asked, 'response')) as [IncomingMessage];
    return JSON.parse(await text(answer)) as { result?: { id: string }; error?: { exit: number; message: string } };
  };
  const words = '{"words":["k1"],"variables":{}}';
  for (const body of [words, `${words}\n`]) {
    for (const headers of [{ 'Transfer-Encoding': 'chunked' }, { 'Content-Length': body.length }]) {
      assert.equal((await ask(body, headers)).result?.id, 'k1', JSON.stringify([body, headers]));
    }
  }
  const message = 'the first line of a request must be {"words": […], "variables": {…}}';
  for (const body of ['', '\n', 'x', 'null', '{}', '{"words":"k1","variables":{}}', '{"words":[1],"variables":{}}']) {
    assert.deepEqual(await ask(body), { error: { exit: 2, message } }, body);
  }
  const rex = '[{"name":"Rex","categoryId":1}]';
  const named = `${'0'.repeat(64)}:0`;
  for (const [line, exit, said] of [
    [` ${rex}`, 2, /^a line of an import must be the name of a batch, /],
    [rex, 2, /^a line of an import must be the name of a batch, /],
    ['x'.repeat(70_000), 2, /in at most 65536 bytes$/],
    [`${named} []`, 1, /^pets\.names is empty$/],
    [`${named} {}`, 1, /must be a JSON array/],
  ] as const) {
    const { error } = await ask(`{"words":["-"],"variables":{}}\n${line}\n`, {}, '/import');
    assert.deepEqual([error?.exit, said.test(error?.message ?? '')], [exit, true], `${error?.message}`);
  }
  await server.stop();
  assert.match(await done('verify'), /^pets +0$/m, 'what was refused is not in the store, which can be read');
});

test('a caller that is slow is waited for; one that is stopped holds up nobody', { timeout: 240_000 }, async (t) => {
  const { animals, done, serve, spawn } = await workplace(t);
  await animals(ANIMALS);
  await done('import in');
  const server = await serve('--first-key pro');
  const asking = ['export', 'export', 'keys list'].map((line) => spawn(line, ['ignore', 'pipe', 'inherit'], PATIENT));
  const [slow, ...stopped] = await Promise.all(asking);
  await wait(SLOW_MS); // nobody reads their pipes
  for (const { child } of stopped) child.kill('SIGSTOP');
  let lines = 0;
  slow.child.stdout!.on('data', (bytes: Buffer) => (lines += bytes.toString('latin1').split('\n').length - 1));
  assert.deepEqual([...(await slow.ended), lines], [0, null, ANIMALS]);
  // No other, no compaction, no end.
  for (const line of ['keys list', 'compact', 'verify', 'backup b', 'keys revoke k1']) await done(line);
  const { exit, stderr } = await server.stop();
  assert.equal(exit, 0, stderr);
});

test('on loopback only names of this machine and its own are answered to; behind a proxy the proxy has looked', async (t) => {
  const { serve } = await workplace(t);
  const server = await serve('--first-key free --base-url https://api.example/v1');
  const { port } = new URL(server.url);
  const asked = (host: string, to = port) =>
    new Promise<string>((resolve) => {
      const head = `GET /v1/pets?limit=1 HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${server.key}\r\n`;
      const socket = connect(Number(to), '127.0.0.1').end(`${head}Connection: close\r\n\r\n`).setEncoding('utf8');
      socket.once('data', (text: string) => resolve(text.slice(9, 12)));
    });
  const own = [`127.0.0.1:${port}`, '[::1]', 'localhost', 'shop.localhost:80', 'API.example', 'x', '10.1.2.3'];
  for (const host of own) assert.equal(await asked(host), '200', host);
  for (const host of [
    'evil.example',
    'api.example.evil.example',
    'localhost.evil.example:80',
    '127.0.0.1.evil.example',
  ]) {
    assert.equal(await asked(host), '400', host);
  }
  await server.stop();
  const behind = await serve('--trust-proxy 1');
  assert.equal(await asked('shop.example', new URL(behind.url).port), '200');
  await behind.stop();
});

test('a server that ends leaves the socket of another, to whose directory its own name now leads', async (t) => {
  const { at, serve, done, json } = await workplace(t);
  for (const name of ['one', 'two']) await mkdir(at(name), { mode: 0o700 });
  await symlink('one', at('now'));
  const first = await serve('--data now');
  await rm(at('now'));
  await symlink('two', at('now'));
  await serve('--data now --first-key free');
  assert.equal((await first.stop()).exit, 0);
  await done('keys revoke k1 --data now');
  assert.equal((await json<{ revokedAt?: string }[]>('keys list --data two'))[0].revokedAt !== null, true);
  assert.deepEqual((await readdir(at('two'))).sort(), ['LOCK', 'admin.sock', 'store-000001.jsonl']);
});

test('a host is loopback in every form, and a name that only begins like such an address is not', () => {
  const options = { trustProxy: 0 } as Parameters<typeof ownNames>[0];
  const ipv4 = '127.0.0.1 127.8.9.10 127.1 ::ffff:127.0.0.1 ::ffff:7f00:1';
  const others = '::1 ::1%lo 0:0:0:0:0:0:0:1 localhost LocalHost localhost. x.localhost';
  for (const host of `${ipv4} ${others}`.split(' ')) {
    assert.equal(isLoopback(host), true, host);
    assert.deepEqual(ownNames({ ...options, host }), [], `a web page cannot reach ${host} under a name of its own`);
  }
  const farther = '0.0.0.0 :: 10.0.0.127 ::ffff:10.0.0.1 fe80::1%lo 127.example mylocalhost shop';
  for (const host of farther.split(' ')) assert.equal(isLoopback(host), false, host);
});
