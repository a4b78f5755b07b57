/** Each thread takes connections, and is to each of them what the others are: the same names, its part of the maximum. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import net from 'node:net';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { workplace } from '../operator/workplace.ts';
import { connect, NO_THREADS } from './served.ts';

const options = { skip: NO_THREADS, timeout: 240_000 };
/** So many that none of three threads is left without: by chance that happens once in 10^11 runs. */
const CONNECTIONS = 64;
/** By then what is to end has ended, however busy the machine is; the rest would be kept for minutes. */
const LONG_MS = 20_000;

async function threeThreads(t: TestContext) {
  const { serve } = await workplace(t);
  return serve('--threads 3');
}

test('all three threads answer: each counts for itself the requests without a key', options, async (t) => {
  const { url } = await threeThreads(t);
  const told = await Promise.all(connect(t, url, CONNECTIONS).map((ask) => ask('GET', '/pets')));
  const remaining = told.map(({ headers }) => Number(headers['x-ratelimit-remaining']));
  assert.equal(remaining.filter((one) => one === Math.max(...remaining)).length, 3, `${remaining}`);
});

test('a name that is not the server’s own is refused by each thread', options, async (t) => {
  const { url } = await threeThreads(t);
  const ask = async (host: string) => {
    const [reply] = await once(request(`${url}/pets`, { headers: { host }, agent: false }).end(), 'response');
    await text(reply);
    return reply.statusCode;
  };
  const asked = async (host: string) =>
    new Set(await Promise.all(Array.from({ length: CONNECTIONS }, () => ask(host))));
  assert.deepEqual(await asked('rebound.example'), new Set([400]));
  assert.ok((await asked('localhost')).has(401));
});

test('with few descriptors each thread takes its part of the connections that fit', options, async (t) => {
  const { headers, serve } = await workplace(t);
  const key = (await headers()).authorization.slice('Bearer '.length);
  const before = ['bash', '-c', 'ulimit -n 200 && exec "$@"', 'bash'];
  const server = await serve('--threads 3 --trust-proxy 1', { before });
  const fitting = 200 - 128 - 2 * 8;
  assert.match(server.stderr(), new RegExp(`only ${fitting} connections are taken at once`));
  const [add] = connect(t, server.url, 1);
  const body = { name: 'Rex', categoryId: 1 };
  assert.equal((await add('POST', '/pets', { key, body })).status, 201);
  const port = Number(new URL(server.url).port);
  let open = 0;
  const ask = async () => {
    const socket = net.connect(port, '127.0.0.1').on('error', () => {});
    t.after(() => socket.destroy());
    open++;
    socket.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await new Promise<void>((resolve) => {
      socket.on('data', () => resolve()).on('close', () => resolve(void open--));
    });
  };
  await Promise.all(Array.from({ length: 2 * fitting }, ask));
  for (const end = performance.now() + LONG_MS; open >= fitting && performance.now() < end; ) await wait(5);
  assert.ok(open < fitting, `${open} connections are open, beside that of the key`);
  assert.equal((await add('POST', '/pets', { key, body })).status, 201);
});

test(
  'when the disk fails, what is under way on each thread is told that its outcome is unknown',
  options,
  async (t) => {
    if (process.env.PETSTORE_TEST_PROGRAM) return t.skip('NODE_OPTIONS have no way into the binary');
    const { at, headers, serve, cwd } = await workplace(t);
    const key = (await headers()).authorization.slice('Bearer '.length);
    // The failure is told while the other threads get no processor.
    const preload = `const fs = require('node:fs');
    const { isMainThread } = require('node:worker_threads');
    const { fdatasync } = fs;
    fs.fdatasync = (file, done) => {
      if (!fs.existsSync(${JSON.stringify(at('fail'))})) return fdatasync(file, done);
      fs.writeFileSync(${JSON.stringify(at('failing'))}, '');
      setTimeout(done, 400, Object.assign(new Error('EIO: a test fails it'), { code: 'EIO', syscall: 'fdatasync' }));
    };
    const stall = () => {
      if (!fs.existsSync(${JSON.stringify(at('failing'))})) return;
      clearInterval(looking);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_000);
    };
    const looking = isMainThread ? undefined : setInterval(stall, 20);`;
    await writeFile(at('preload.cjs'), preload);
    const server = await serve('--threads 3', { cwd, env: { NODE_OPTIONS: `--require ${at('preload.cjs')}` } });
    await writeFile(at('fail'), '');
    const body = { name: 'Rex', categoryId: 1 };
    const told = await Promise.all(connect(t, server.url, 24).map((ask) => ask('POST', '/pets', { key, body })));
    const unknown = told.filter((one) => one.status === 503 && JSON.parse(one.body).code === 'outcome_unknown');
    assert.ok(unknown.length > 0);
    assert.deepEqual(new Set(told.map(({ status }) => status)), new Set([503]));
    const { exit, stderr } = await server.ended;
    assert.equal(exit, 1);
    assert.match(stderr, /"level":"error","message":"the disk failed; the next start shows which writes were kept"/);
  },
);
