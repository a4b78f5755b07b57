/** A server from its start to its end, however it comes to that; and what the next start finds. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { appendFile, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { openFileStore } from '../../src/store/file/store.ts';
import { SetClock } from '../clock.ts';
import { freePort, standingStillUntil } from '../program.ts';
import { until } from '../until.ts';
import { ANIMAL, workplace } from './workplace.ts';

const STORE_FILE = 'store.jsonl';
const IN_USE = 'data is in use by another process: end that process, or name another directory with --data';

const SEED = `{"categories":[{"id":1,"name":"Dogs"}],
  "pets":[{"name":"Rex","categoryId":9007199254740993},{"name":"Bo","categoryId":1,"status":"sold"}]}`;

test('the first line says where it listens; the seed and the first key come once', async (t) => {
  const { at, serve } = await workplace(t);
  await mkdir(at('data'), { mode: 0o755 });
  await writeFile(at('data/seed.json'), SEED); // as in a clone
  const args = '--seed data/seed.json --first-key pro';
  const server = await serve(args);
  assert.match(server.url, /^http:\/\/127\.0\.0\.1:\d+\/v1$/);
  const { key, url } = server;
  const steps = ['The key k1, which is shown only once:', key, `curl -s -H 'Authorization: Bearer ${key}' ${url}/pets`];
  assert.deepEqual(server.stdout().split('\n').slice(1, -1), steps);
  const list = async (url: string) =>
    (await fetch(`${url}/pets`, { headers: { authorization: `Bearer ${key}` } })).text();
  const pets = await list(server.url);
  assert.match(pets, /"name":"Rex","categoryId":9007199254740993,"status":"available"/);
  assert.equal((await stat(at('data'))).mode & 0o777, 0o700);
  const { exit } = await server.stop();
  assert.equal(exit, 0);

  await writeFile(at('data/seed.json'), 'no longer read');
  const again = await serve(`${args} --host ::1`);
  assert.match(again.stdout(), /^petstore listening on http:\/\/\[::1\]:\d+\/v1\n$/);
  assert.equal(await list(again.url), pets);
  again.process.kill('SIGHUP');
  assert.equal((await again.ended).exit, 0);
});

test('health asks whether the service serves', async (t) => {
  const { run, serve } = await workplace(t);
  const { url, stop } = await serve();
  const { host, port } = new URL(url);
  const health = `health --host 0.0.0.0 --port ${port}`;
  const { exit, stdout } = await run(health);
  assert.deepEqual([exit, stdout], [0, `ready  http://${host}/readyz\n`]);
  await stop();
  const away = await run(health);
  assert.deepEqual([away.exit, away.stdout], [1, '']);
  assert.match(away.stderr, /^no reply from http:\S+\/readyz: is it another --host or --port\?\n$/);
});

test('a server on all addresses names those that work, and the document too; it has none that nobody gave', async (t) => {
  const { serve } = await workplace(t);
  for (const [host, name] of [
    ['0.0.0.0', '127.0.0.1'],
    ['::', '[::1]'],
  ]) {
    const { url, stdout, stop } = await serve(`--host ${host}`);
    const { origin, hostname } = new URL(url);
    assert.equal(hostname, name);
    assert.equal(stdout(), `petstore listening on ${url}\n`);
    assert.deepEqual(await serversOf(origin), [url]);
    await stop();
  }
  const both = await serve('--base-url https://a.example/v1 --staging-base-url https://b.example/v1');
  const given = ['https://a.example/v1', 'https://b.example/v1'];
  assert.deepEqual(await serversOf(new URL(both.url).origin), given);
});

async function serversOf(origin: string): Promise<string[]> {
  const { servers } = (await (await fetch(`${origin}/openapi.json`)).json()) as { servers: { url: string }[] };
  return servers.map(({ url }) => url);
}

test('SIGUSR1 opens no debugger, and the server goes on', async (t) => {
  const { serve } = await workplace(t);
  const server = await serve();
  server.process.kill('SIGUSR1');
  await wait(200); // Node would say by now where its debugger listens
  assert.equal((await fetch(new URL('/healthz', server.url))).status, 200);
  assert.doesNotMatch((await server.stop()).stderr, /debugger/i);
});

test('a port in use is refused with exit 1 and the option to type, and no store is made', async (t) => {
  const { at, run, done } = await workplace(t);
  const other = createServer().listen(0, '127.0.0.1');
  t.after(() => other.close());
  await once(other, 'listening');
  const { port } = other.address() as { port: number };
  const { exit, stdout, stderr } = await run(`serve --port ${port}`);
  assert.deepEqual([exit, stdout], [1, '']);
  assert.match(stderr, new RegExp(`127\\.0\\.0\\.1:${port} is in use by another program: choose another with --port`));
  assert.ok(!existsSync(at('data')));
  await done('keys create --plan free');
  assert.equal((await run(`serve --port ${port}`)).exit, 1);
  assert.match(await done('keys list'), /^k1 /m);
});

test('a second server is refused with exit 4, also while the first is stopped; commands then say so', async (t) => {
  const { run, done, serve } = await workplace(t);
  const server = await serve();
  const refused = await run(`serve --port ${new URL(server.url).port}`);
  assert.deepEqual([refused.exit, refused.stdout], [4, '']);
  assert.equal(JSON.parse(refused.stderr).message, IN_USE);
  server.process.kill('SIGSTOP');
  const [again, { exit, stderr }] = await Promise.all([
    run('serve --port 0'),
    run('keys create --plan free', { isServerStopped: true }),
  ]);
  assert.equal(again.exit, 4);
  assert.deepEqual([exit, /in use by a server that does not answer/.test(stderr)], [4, true], stderr);
  server.process.kill('SIGCONT');
  const none = /^There are no keys. See node \S+ keys create --help\n$/;
  assert.match(await done('keys list'), none, 'what was given up is not done later');
  assert.equal((await server.stop()).exit, 0);
});

test('a second server is refused where flock does not work; nobody removes a socket that somebody listens on', async (t) => {
  const { at, run, done, serve, stored } = await workplace(t);
  await mkdir(at('bin'));
  await writeFile(at('bin/flock'), '#!/bin/sh\nexit 64\n', { mode: 0o755 });
  const env = { PATH: `${at('bin')}:${process.env.PATH}` };
  const first = await serve('--first-key free', { env });
  assert.match(first.stderr(), /the program flock does not work here/);
  first.process.kill('SIGSTOP');
  const stopped = await run('serve --port 0', { env });
  first.process.kill('SIGCONT');
  assert.equal((await run('restore none', { env })).exit, 4, 'nothing is restored under a server');
  for (const { exit, stdout, stderr } of [stopped, await run('serve --port 0', { env })]) {
    assert.deepEqual([exit, stdout, JSON.parse(stderr).message], [4, '', IN_USE]);
  }
  assert.match(await done('keys list'), /^k1 /m, 'the first is reached by its socket');
  assert.equal((await first.stop()).exit, 0);
  assert.ok(!(await stored()).includes('admin.sock'));
  await (await serve('', { env })).kill();
  assert.ok((await stored()).includes('admin.sock'));
  assert.equal((await (await serve('', { env })).stop()).exit, 0, 'what a kill left is removed');
});

test('the log tells the settings in force, and no secret', async (t) => {
  const { serve } = await workplace(t);
  const given = { PETSTORE_CORS_ORIGIN: 'https://a.example', PETSTORE_BAN_AFTER: '7' };
  const server = await serve('--first-key free --metrics 127.0.0.1:0 --keep-alive 75', { env: given });
  const line = (await server.stop()).stderr.split('\n').find((one) => one.includes('"message":"listening"'))!;
  const { url, metrics, version, settings } = JSON.parse(line);
  assert.equal(url, server.url);
  assert.match(`${metrics} ${version}`, /^http:\/\/127\.0\.0\.1:\d+\/metrics \d+\.\d+\.\d+$/);
  const { maxStoreMb, ...rest } = settings;
  assert.ok(maxStoreMb > 0 && maxStoreMb <= 384);
  assert.deepEqual(rest, {
    host: '127.0.0.1',
    port: 0,
    store: 'data',
    firstKey: 'free',
    environment: 'production',
    corsOrigin: 'https://a.example',
    trustProxy: 0,
    keepAlive: 75,
    connectionsPerAddress: 100,
    banAfter: 7,
    accessLog: false,
    metrics: { host: '127.0.0.1', port: 0 },
  });
});

test('a server waits a while for a command that has the store: it is alive, and not ready', async (t) => {
  const { at, spawn } = await workplace(t);
  const log = { info() {}, warn() {}, error() {} };
  const holder = await openFileStore(at('data'), { clock: new SetClock(), log });
  const port = await freePort();
  // It gives up after 3 s: so no time passes for it until the lock is let go.
  const server = await spawn(`serve --port ${port}`, 'pipe', standingStillUntil(at('released')));
  const ask = (page: string) => fetch(`http://127.0.0.1:${port}${page}`).catch(() => undefined);
  await until(async () => (await ask('/healthz'))?.status === 200);
  assert.equal((await ask('/readyz'))?.status, 503);
  await holder.close();
  await writeFile(at('released'), '');
  const [said] = await once(server.child.stdout!, 'data');
  assert.match(String(said), /^petstore listening/);
  assert.equal((await ask('/readyz'))?.status, 200);
  server.child.kill('SIGTERM');
  assert.deepEqual(await server.ended, [0, null]);
});

test('what a kill leaves behind does no harm: the socket, and a torn end, which the next start reports', async (t) => {
  const { at, done, serve, stored } = await workplace(t);
  await (await serve('--first-key free')).kill();
  assert.ok((await stored()).includes('admin.sock'));
  await appendFile(at(`data/${STORE_FILE}`), '{"crc":"0000');
  assert.match(await done('verify'), /^keys +1$/m);
  assert.match(await done('keys list'), /k1/);
  const server = await serve();
  assert.match(await done('keys create --plan free'), /^id +k2$/m);
  const { stderr } = await server.stop();
  assert.match(stderr, /"level":"warn","message":"[^"]*(torn|cut off|crash)/);
  assert.ok(!(await stored()).includes('admin.sock'));
});

test('who had connected when SIGTERM came is answered, and not cut off', async (t) => {
  const { serve } = await workplace(t);
  const server = await serve();
  server.process.kill('SIGSTOP'); // so that the kernel alone has taken them
  const sockets = Array.from({ length: 12 }, () => connect(Number(new URL(server.url).port), '127.0.0.1'));
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  for (const socket of sockets) socket.write('GET /v1/pets HTTP/1.1\r\nHost: x\r\n\r\n');
  server.process.kill('SIGTERM');
  server.process.kill('SIGCONT');
  for (const socket of sockets) assert.match(await text(socket), /^HTTP\/1.1 (401|503) /);
  assert.equal((await server.ended).exit, 0);
});

test('under load, SIGTERM ends it with exit 0: what it took is answered, and what it did not take left no trace', async (t) => {
  const { done, serve, headers: headersOf } = await workplace(t);
  const server = await serve();
  const headers = await headersOf();
  const half = connect(Number(new URL(server.url).port), '127.0.0.1');
  const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  half.write(`POST /v1/pets HTTP/1.1\r\nHost: x\r\n${head.join('')}Content-Length: 30\r\n\r\n{"name":"half","`);
  let isStopping = false;
  const served = { GET: 0, POST: 0 };
  const [answered, reset]: string[][] = [[], []];
  const worker = async (_: unknown, number: number) => {
    const method = number % 2 ? 'POST' : 'GET';
    for (let i = 0, outcome: number | string = 0; outcome !== 'ECONNREFUSED'; i++) {
      const name = `${number}-${i}`;
      const body = method === 'POST' ? `{"name":"${name}","categoryId":1}` : undefined;
      const asked = fetch(`${server.url}/pets`, { method, headers, body });
      outcome = await asked.then(
        (reply) => reply.text().then(() => reply.status), // of which nothing may be missing
        ({ cause }) => cause.code,
      );
      if (outcome === 200 || outcome === 201) served[method]++;
      if (outcome === 201) answered.push(name);
      // On a connection that the kernel had not handed over yet, or that was closed as idle.
      if (isStopping && ['ECONNRESET', 'UND_ERR_SOCKET', 'EPIPE'].includes(`${outcome}`)) reset.push(name);
      else assert.ok([200, 201, 503, 'ECONNREFUSED'].includes(outcome), `a request came to ${outcome}`);
    }
  };
  const workers = Array.from({ length: 24 }, worker);
  await until(() => served.GET > 24 && served.POST > 24);
  server.process.kill('SIGTERM');
  isStopping = true;
  await until(() => server.stderr().includes('"stopping"'));
  server.process.kill('SIGINT'); // the same wish, as Ctrl-C under `npm start`
  await wait(100);
  half.write('categoryId":1}');
  assert.match(await text(half), /^HTTP\/1.1 201 /);
  await Promise.all(workers);
  const { exit, stderr } = await server.ended;
  assert.equal(exit, 0, stderr);
  assert.match(stderr, /"message":"stopping","signal":"SIGTERM"[\s\S]*"message":"stopped"/);
  const kept: string[] = (await done('export')).match(/(?<="name":")[^"]+/g) ?? [];
  for (const name of [...answered, 'half']) assert.ok(kept.includes(name), `${name} was acknowledged`);
  for (const name of reset) assert.ok(!kept.includes(name), `${name} was kept, and not answered`);
});

test('^C ends a command with one line; an import that it cut short is completed by the same command', async (t) => {
  const { done, serve, spawn } = await workplace(t);
  await serve();
  const { child, ended, stderr } = await spawn('import -');
  child.stdin!.write(`${ANIMAL}nonsense\n`);
  await until(() => stderr().startsWith('line 2: ')); // it reads its input
  child.kill('SIGINT');
  assert.deepEqual(await ended, [1, null]);
  assert.match(stderr(), /^line 2: .*\npetstore import was interrupted\n$/);
  assert.match(await done('verify'), /^pets +0$/m);
});

test('serve --check says what a start would come to, with its status, takes no lock and changes nothing', async (t) => {
  const { at, cwd, run, done, serve } = await workplace(t);
  const isOk = async (line = '') => assert.equal(await done(`serve --check ${line}`), 'ok\n', line);
  await isOk('--seed demo');
  assert.deepEqual(await readdir(cwd), [], 'a store that a start would make is not made');
  await mkdir(at('other'));
  await writeFile(at('other/mine'), '');
  await writeFile(at('seed'), '{');
  for (const [line, status, fault] of [
    ['--port 65536', 2, /^petstore serve: --port \(or PETSTORE_PORT\) cannot be "65536"/],
    ['--data other', 1, /^other holds no store, but "mine"/],
    ['--seed seed', 1, /^seed seed: .*column 2/],
    ['--data seed', 1, /^seed: not a directory/],
  ] as const) {
    const { exit, stdout, stderr } = await run(`serve --check ${line}`);
    assert.deepEqual([exit, stdout], [status, ''], stderr);
    assert.match(stderr, fault);
  }
  const server = await serve('--first-key free');
  await isOk();
  await server.stop();
  const file = at(`data/${STORE_FILE}`);
  await writeFile(file, (await readFile(file, 'utf8')).replace('first key', 'first kez'));
  const before = await Promise.all((await readdir(at('data'))).map((name) => readFile(at(`data/${name}`))));
  const { exit, stderr } = await run('serve --check');
  assert.deepEqual([exit, /offset \d+/.test(stderr)], [3, true], stderr);
  const after = await Promise.all((await readdir(at('data'))).map((name) => readFile(at(`data/${name}`))));
  assert.deepEqual(after, before);
});

test('a bound that the heap cannot hold is refused with the most that it can, by all that takes one', async (t) => {
  const { at, run } = await workplace(t);
  await writeFile(at('in'), ANIMAL);
  const env = { NODE_OPTIONS: '--max-old-space-size=256' };
  for (const line of ['serve --port 0', 'serve --check', 'keys create --plan free', 'import in']) {
    const { exit, stdout, stderr } = await run(`${line} --max-store-mb 4000`, { env });
    assert.deepEqual([exit, stdout, existsSync(at('data'))], [2, '', false], line);
    const [, most, heap] = /cannot be "4000": give a whole number, 1 to (\d+): the heap of this process, (\d+) MB/.exec(
      stderr,
    )!;
    assert.ok(Number(most) <= Number(heap) / 3 && Number(most) >= 64, stderr);
  }
});

test('a store that is too large for the heap is told in one sentence, by a start and by who reads', async (t) => {
  const { at, run, done } = await workplace(t);
  await writeFile(at('in'), `{"name":"${'n'.repeat(250)}","categoryId":1}\n`.repeat(150_000));
  await done('import in');
  const env = { NODE_OPTIONS: '--max-old-space-size=32' };
  for (const line of ['serve --port 0', 'serve --check', 'verify']) {
    const { exit, stdout, stderr } = await run(line, { env });
    assert.deepEqual([exit, stdout], [1, ''], stderr);
    assert.match(stderr, /the store in data is too large for this process: its heap of \d+ MB cannot hold it/);
    assert.equal(stderr.trimEnd().split('\n').length, 1, stderr);
  }
});
