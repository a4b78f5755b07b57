import assert from 'node:assert/strict';
import { once } from 'node:events';
import { appendFile, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import http from 'node:http';
import { connect, createServer } from 'node:net';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { program, serveProgram, serving, temporary } from '../program.ts';

const SEED = `{"categories":[{"id":1,"name":"Dogs"}],
  "pets":[{"name":"Rex","categoryId":9007199254740993},{"name":"Bo","categoryId":1,"status":"sold"}]}`;

const list = async (url: string, key: string) =>
  (await fetch(`${url}/pets`, { headers: { authorization: `Bearer ${key}` } })).text();

test('the first line says where it listens; the seed and the first key come once', async (t) => {
  const cwd = await temporary(t);
  await mkdir(path.join(cwd, 'data'), { mode: 0o755 });
  await writeFile(path.join(cwd, 'data/seed.json'), SEED); // as in a clone
  const args = ['--seed', 'data/seed.json', '--first-key', 'pro'];
  const server = await serving(t, args, { cwd });
  assert.match(server.url, /^http:\/\/127\.0\.0\.1:\d+\/v1$/);
  const [, key, curl] = server.stdout().split('\n');
  assert.equal(key, server.key);
  assert.equal(curl, `curl -s -H 'Authorization: Bearer ${key}' ${server.url}/pets`);
  const pets = await list(server.url, key);
  assert.match(pets, /"name":"Rex","categoryId":9007199254740993,"status":"available"/);
  assert.equal((await stat(path.join(cwd, 'data'))).mode & 0o777, 0o700);
  assert.equal((await server.stop()).exit, 0);

  await writeFile(path.join(cwd, 'data/seed.json'), 'no longer read');
  const again = await serving(t, [...args, '--host', '::1'], { cwd });
  assert.match(again.stdout(), /^petstore listening on http:\/\/\[::1\]:\d+\/v1\n$/);
  assert.equal(await list(again.url, key), pets);
});

test('a port in use is told, with exit 1', async (t) => {
  const cwd = await temporary(t);
  const other = createServer().listen(0, '127.0.0.1');
  t.after(() => other.close());
  await once(other, 'listening');
  const { port } = other.address() as { port: number };
  const { exit, stdout, stderr } = await program(['serve', '--port', String(port)], { cwd });
  assert.deepEqual([exit, stdout], [1, '']);
  assert.match(stderr, new RegExp(`127\\.0\\.0\\.1:${port} is in use by another program`));
  const files = await readdir(path.join(cwd, 'data'));
  assert.equal((await program(['serve', '--port', String(port)], { cwd })).exit, 1);
  assert.deepEqual(await readdir(path.join(cwd, 'data')), files, 'a start that failed leaves a clean store');
});

test('a second server is refused with exit 4, also while the first is stopped; commands then say so too', async (t) => {
  const cwd = await temporary(t);
  const server = await serving(t, [], { cwd });
  const second = () => program(['serve', '--port', new URL(server.url).port], { cwd });
  const refused = await second();
  assert.deepEqual([refused.exit, refused.stdout], [4, '']);
  assert.match(refused.stderr, /data is in use/);
  server.process.kill('SIGSTOP');
  assert.equal((await second()).exit, 4);
  const asked = await program(['keys', 'create', '--plan', 'free'], { cwd });
  assert.equal(asked.exit, 4);
  assert.match(asked.stderr, /in use by a server that does not answer/);
  assert.equal((await program(['repair'], { cwd })).exit, 4);
  server.process.kill('SIGCONT');
  const { exit, stdout } = await program(['keys', 'list'], { cwd });
  assert.equal(exit, 0);
  assert.match(stdout, /^There are no keys/, 'what was given up is not done later');
  assert.equal((await server.stop()).exit, 0);
});

test('the socket that a kill leaves behind is in nobody’s way', async (t) => {
  const cwd = await temporary(t);
  await (await serving(t, ['--first-key', 'free'], { cwd })).kill();
  assert.ok((await readdir(path.join(cwd, 'data'))).includes('admin.sock'));
  assert.match((await program(['keys', 'list'], { cwd })).stdout, /k1/);
  const server = await serving(t, [], { cwd });
  assert.match((await program(['keys', 'create', '--plan', 'free'], { cwd })).stdout, /^id +k2$/m);
  await server.stop();
  assert.ok(!(await readdir(path.join(cwd, 'data'))).includes('admin.sock'));
});

test('a data directory whose socket has too long a path for the kernel is refused in a sentence', async (t) => {
  const data = path.join(await temporary(t), 'd'.repeat(150));
  for (const line of ['serve --port 0', 'keys create --plan free']) {
    const { exit, stdout, stderr } = await program([...line.split(' '), '--data', data]);
    assert.deepEqual([exit, stdout], [1, ''], line);
    assert.match(stderr, /admin\.sock is too long for a socket: at most 107 bytes/);
  }
});

test('who had connected when SIGTERM came is answered, and not cut off', async (t) => {
  const server = await serving(t, [], { cwd: await temporary(t) });
  server.process.kill('SIGSTOP'); // so that the kernel alone has taken them
  const replies = Array.from({ length: 12 }, () => {
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
    socket.write('GET /v1/pets HTTP/1.1\r\nHost: x\r\n\r\n');
    return once(socket, 'connect').then(() => socket);
  });
  const sockets = await Promise.all(replies);
  server.process.kill('SIGTERM');
  server.process.kill('SIGCONT');
  for (const socket of sockets) assert.match(await text(socket), /^HTTP\/1.1 (401|503) /);
  assert.equal((await server.ended).exit, 0);
});

test('under load, SIGTERM ends it with exit 0: what it took is answered, and what it did not take left no trace', async (t) => {
  const cwd = await temporary(t);
  const server = await serving(t, [], { cwd });
  const words = 'keys create --plan enterprise --per-minute 1000000 --per-day 1000000 --json'.split(' ');
  const { key } = JSON.parse((await program(words, { cwd })).stdout);
  const agent = new http.Agent({ keepAlive: true, maxSockets: 32 });
  t.after(() => agent.destroy());
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const ask = (method: string, length: object, send: (request: http.ClientRequest) => void) =>
    new Promise<number | string>((resolve) => {
      const options = { agent, method, headers: { ...headers, ...length } };
      const request = http.request(`${server.url}/pets`, options, (reply) => {
        reply.resume().on('end', () => resolve(reply.statusCode!));
        reply.on('error', (error) => resolve(`reply: ${error.message}`));
      });
      request.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
      send(request);
    });
  let isStopping = false;
  const half = ask('POST', { 'content-length': 30 }, async (request) => {
    request.write('{"name":"half","');
    while (!isStopping) await wait(10);
    await wait(100);
    request.end('categoryId":1}');
  });
  const outcomes = new Map<number | string, number>();
  const names = { answered: new Set<string>(), reset: new Set<string>() };
  const worker = async (_: unknown, number: number) => {
    for (let i = 0, outcome: number | string = 200; outcome !== 'ECONNREFUSED'; i++) {
      const name = `${number}-${i}`;
      const body = number % 2 ? `{"name":"${name}","categoryId":1}` : undefined;
      outcome = await ask(body ? 'POST' : 'GET', {}, (request) => void request.end(body));
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      if (outcome === 201) names.answered.add(name);
      // On a connection that the kernel had not handed over yet, or that was closed as idle.
      if (outcome === 'ECONNRESET' && isStopping) names.reset.add(name);
      else if (![200, 201, 503, 'ECONNREFUSED'].includes(outcome)) assert.fail(`a request came to ${outcome}`);
    }
  };
  const workers = Array.from({ length: 24 }, worker);
  while (Math.min(outcomes.get(200) ?? 0, outcomes.get(201) ?? 0) <= 24) await wait(5);
  server.process.kill('SIGTERM');
  isStopping = true;
  await wait(5);
  server.process.kill('SIGINT'); // the same wish, as Ctrl-C under `npm start`
  await Promise.all(workers);
  const ended = await server.ended;
  assert.deepEqual([ended.exit, ended.signal], [0, null], ended.stderr);
  assert.match(ended.stderr, /"message":"stopping","signal":"SIGTERM"[\s\S]*"message":"stopped"/);
  assert.equal(await half, 201);
  const lines = (await program(['export'], { cwd })).stdout.trim().split('\n');
  const kept = new Set(lines.map((line): string => JSON.parse(line).name));
  assert.ok(kept.has('half'));
  for (const name of names.answered) assert.ok(kept.has(name), `${name} was acknowledged`);
  for (const name of names.reset) assert.ok(!kept.has(name), `${name} was kept, and not answered`);
});

test('damage is refused with exit 3 by every command that reads; repair cuts it and says what was lost', async (t) => {
  const cwd = await temporary(t);
  const data = path.join(cwd, 'data');
  const server = await serving(t, ['--first-key', 'pro'], { cwd });
  const headers = { authorization: `Bearer ${server.key}`, 'content-type': 'application/json' };
  for (let i = 0; i < 5; i++) {
    await fetch(`${server.url}/pets`, { method: 'POST', headers, body: `{"name":"n${i}","categoryId":1}` });
  }
  await server.kill();
  assert.equal((await program(['verify'], { cwd })).exit, 0);
  const log = path.join(data, (await readdir(data)).find((name) => name.startsWith('store-'))!);
  const whole = await readFile(log, 'utf8');
  await writeFile(log, whole.replace('"name":"n2"', '"name":"N2"'));

  for (const line of ['serve --port 0', 'verify', 'keys list', 'export', 'backup b', 'compact']) {
    const { exit, stdout, stderr } = await program(line.split(' '), { cwd });
    assert.deepEqual([exit, stdout], [3, ''], line);
    assert.match(stderr, /store-\d+\.jsonl, offset \d+.*`node \S+ repair --data data`/s, line);
  }
  const { exit, stdout } = await program(['repair'], { cwd });
  assert.equal(exit, 0);
  assert.match(stdout, /^damage +\S+\.jsonl, offset \d+: the checksum is wrong$/m);
  assert.match(stdout, /^kept beside +\S+\.damaged$/m);
  assert.match(stdout, /^lost batches +[3-9]\nlost bytes +\d/m, 'on a slow machine usage has batches of its own');
  assert.match(stdout, /^pets +2$/m);
  const nextKeyId = /^next key id +(k\d+)$/m.exec(stdout)?.[1];
  const kept = (await readdir(data)).filter((name) => name.includes('.damaged'));
  assert.equal(kept.length, 1);
  const next = await serving(t, ['--first-key', 'pro'], { cwd });
  const keys = JSON.parse((await program(['keys', 'list', '--json'], { cwd })).stdout);
  assert.deepEqual([keys.length, keys[1].id], [2, nextKeyId], 'what is told of the next ids is so');
  const made = await fetch(`${next.url}/pets`, {
    method: 'POST',
    headers: { ...headers, authorization: `Bearer ${next.key}` },
    body: '{"name":"new","categoryId":1}',
  });
  assert.ok(((await made.json()) as { id: number }).id > 5, 'ids that somebody may know are not given again');
  assert.match((await program(['repair', '--data', 'nowhere'], { cwd })).stderr, /there is no store/);
});

test('a torn end is put right by the next start, and told', async (t) => {
  const cwd = await temporary(t);
  const data = path.join(cwd, 'data');
  await (await serving(t, ['--first-key', 'free'], { cwd })).kill();
  const log = path.join(data, (await readdir(data)).find((name) => name.startsWith('store-'))!);
  await appendFile(log, '{"crc":"0000');
  assert.match((await program(['verify'], { cwd })).stdout, /^notices +\S/m);
  const server = await serveProgram([], { cwd });
  assert.match((await server.stop()).stderr, /"level":"warn","message":"[^"]*(torn|cut off|crash)/);
});
