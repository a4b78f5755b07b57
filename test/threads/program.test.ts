/** The real program on three threads is one service. That it keeps the API table is shown in test/api.test.ts. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import net from 'node:net';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { wantOf } from '../../src/operator/exit.ts';
import { stoppingMs } from '../http/flood.ts';
import { workplace } from '../operator/workplace.ts';
import type { Serving } from '../program.ts';
import { requestsOf } from '../raw.ts';
import { connect, NO_THREADS, type Told } from './served.ts';

const options = { skip: NO_THREADS, timeout: 240_000 };
const PET = { name: 'Rex', categoryId: 1 };
/** The service itself gives up waiting after 10 s; the rest is for a machine that is busy with other things. */
const MAX_STOP_MS = 60_000;
const remainingOf = ({ headers }: Told) => Number(headers['x-ratelimit-remaining']);
/** Numbers from 0 on, each once. */
const each = (count: number) => Array.from({ length: count }, (_, n) => n);

test(
  'bursts of 300 requests of a Free key over 64 connections: 60 are admitted, each remaining is told once',
  options,
  async (t) => {
    const { json, serve } = await workplace(t);
    const server = await serve('--threads 3 --access-log');
    const connections = connect(t, server.url, 64);
    for (let burst = 0; burst < 10; burst++) {
      const { key, id } = await json<{ key: string; id: string }>('keys create --plan free');
      const told = await Promise.all(each(300).map((n) => connections[n % 64]('GET', '/pets', { key })));
      const admitted = told.filter(({ status }) => status === 200).map(remainingOf);
      assert.deepEqual(
        admitted.sort((a, b) => a - b),
        each(60),
      );
      assert.equal(told.filter(({ status }) => status === 429).length, 240);
      assert.equal(new Set(told.map(({ headers }) => headers['x-ratelimit-reset'])).size, 1, 'one reset');
      const shown = await json<{ minute: { remaining: number }; strikes: number }>(`keys show ${id}`);
      assert.deepEqual([shown.minute.remaining, shown.strikes], [0, 240], JSON.stringify(shown));
    }
  },
);

test('one ban begins, whoever strikes last, and is counted and logged once', options, async (t) => {
  const { json, serve } = await workplace(t);
  const server = await serve('--threads 3 --metrics 127.0.0.1:0');
  const connections = connect(t, server.url, 32);
  const { key, id } = await json<{ key: string; id: string }>('keys create --plan free');
  const told = await Promise.all(each(480).map((n) => connections[n % 32]('GET', '/pets', { key })));
  const codes = told.filter(({ status }) => status === 429).map(({ body }) => JSON.parse(body).code);
  assert.deepEqual([codes.filter((code) => code === 'rate_limited').length, codes.length], [299, 420]);
  const metrics = await (await fetch(metricsOf(server))).text();
  assert.match(metrics, /\npetstore_bans_total 1\n/);
  assert.ok(metrics.includes('petstore_requests_total{route="listPets",status="200"} 60\n'), metrics);
  assert.ok(metrics.includes('petstore_requests_total{route="listPets",status="429"} 420\n'), metrics);
  assert.ok(metrics.includes('petstore_request_duration_seconds_count{route="listPets"} 480\n'), metrics);
  await json(`keys lift ${id}`);
  for (const ask of connections)
    assert.equal(JSON.parse((await ask('GET', '/pets', { key })).body).code, 'rate_limited');
  const { stderr, exit } = await server.stop();
  assert.deepEqual([stderr.match(/"a ban began"/g)?.length, exit], [1, 0]);
});

const metricsOf = (server: Serving) => /"metrics":"(http:[^"]+)"/.exec(server.stderr())![1];

test('what was acknowledged on one connection is read on every other', options, async (t) => {
  const { headers, serve } = await workplace(t);
  const key = (await headers()).authorization.slice('Bearer '.length);
  const server = await serve('--threads 3');
  const pairs = Number(process.env.PETSTORE_TEST_PAIRS ?? 3_000);
  const workers = 12;
  const connections = connect(t, server.url, 2 * workers);
  const stale: number[] = [];
  let left = pairs;
  const work = async (own: number) => {
    for (let turn = own; left-- > 0; turn++) {
      const { status, body } = await connections[own]('POST', '/pets', { key, body: PET });
      assert.equal(status, 201, body);
      const { id } = JSON.parse(body);
      const read = await connections[workers + (turn % workers)]('GET', `/pets/${id}`, { key });
      if (read.status !== 200) stale.push(id);
    }
  };
  await Promise.all(each(workers).map(work));
  assert.deepEqual(stale, []);
});

test(
  'a key ends on all threads with the command that ends it; a plan changes, and a new key works',
  options,
  async (t) => {
    const { json, serve } = await workplace(t);
    const server = await serve('--threads 3');
    const connections = connect(t, server.url, 12); // their refusals stay within what an address has
    for (let round = 0; round < 2; round++) {
      const { key, id } = await json<{ key: string; id: string }>('keys create --plan business');
      const all = async (secret: string) => {
        const told = await Promise.all(connections.map((ask) => ask('GET', '/pets', { key: secret })));
        return { statuses: new Set(told.map(({ status }) => status)), limit: told[0].headers['x-ratelimit-limit'] };
      };
      assert.deepEqual(await all(key), { statuses: new Set([200]), limit: '1000' });
      await json(`keys plan ${id} pro`);
      assert.deepEqual(await all(key), { statuses: new Set([200]), limit: '300' });
      const next = await json<{ key: string }>(`keys rotate ${id} --grace 0s`);
      assert.deepEqual((await all(key)).statuses, new Set([401]));
      assert.deepEqual((await all(next.key)).statuses, new Set([200]));
      await json(`keys revoke ${id}`);
      assert.deepEqual((await all(next.key)).statuses, new Set([401]));
    }
  },
);

test('one Idempotency-Key makes one animal, one animal is ordered once, ids have no doubles', options, async (t) => {
  const { headers, serve } = await workplace(t);
  const key = (await headers()).authorization.slice('Bearer '.length);
  const server = await serve('--threads 3');
  const connections = connect(t, server.url, 24);
  const made = await Promise.all(connections.map((ask) => ask('POST', '/pets', { key, body: PET })));
  assert.equal(new Set(made.map(({ body }) => JSON.parse(body).id)).size, 24);
  for (let round = 0; round < 10; round++) {
    const told = await Promise.all(
      connections.map((ask) => ask('POST', '/pets', { key, body: PET, once: `o${round}` })),
    );
    const good = told.filter(({ status }) => status === 201);
    assert.equal(new Set(good.map(({ body }) => body)).size, 1);
    assert.equal(good.filter(({ headers }) => headers['idempotent-replayed'] === undefined).length, 1, 'made once');
    for (const { status, body } of told)
      assert.ok(status === 201 || JSON.parse(body).code === 'idempotency_in_flight', body);
    const { id: petId } = JSON.parse(good[0].body);
    const orders = await Promise.all(connections.map((ask) => ask('POST', '/store/orders', { key, body: { petId } })));
    assert.deepEqual(orders.map(({ status }) => status).sort(), [201, ...Array(23).fill(409)]);
  }
  const { stderr } = await server.stop();
  assert.doesNotMatch(stderr, /"level":"error"/);
});

test(
  'what threads log is logged, and what they count is counted after a restart, also on one thread',
  options,
  async (t) => {
    const { json, serve } = await workplace(t);
    const { key, id } = await json<{ key: string; id: string }>('keys create --plan free');
    let server = await serve('--threads 4 --access-log');
    const told = await Promise.all(connect(t, server.url, 40).map((ask) => ask('GET', '/pets?limit=1', { key })));
    assert.deepEqual(
      told.map(remainingOf).sort((a, b) => a - b),
      each(60).slice(20),
    );
    const { stderr, exit } = await server.stop();
    assert.equal(exit, 0, stderr);
    const logged = stderr
      .match(/.+/g)!
      .map((line) => JSON.parse(line))
      .filter(({ level }) => level === 'access');
    const ids = told.map(({ headers }) => headers['x-request-id']);
    assert.deepEqual(logged.map(({ requestId }) => requestId).sort(), ids.sort());
    assert.deepEqual(
      new Set(logged.map(({ status, key, target }) => `${status} ${key} ${target}`)),
      new Set(['200 k1 /v1/pets?limit=1']),
    );
    server = await serve();
    const { day } = await json<{ day: { remaining: number } }>(`keys show ${id}`);
    assert.equal(day.remaining, 960);
  },
);

test('SIGTERM under load ends it with status 0, and all that was acknowledged is kept', options, async (t) => {
  const { headers, serve } = await workplace(t);
  const key = (await headers()).authorization.slice('Bearer '.length);
  const server = await serve('--threads 3');
  const acknowledged: number[] = [];
  const seen = new Set<string>();
  let isOver = false;
  const working = connect(t, server.url, 48).map(async (ask, n) => {
    const request = () => (n % 2 ? ask('POST', '/pets', { key, body: PET }) : ask('GET', '/pets', { key }));
    while (!isOver) {
      const { status, body } = await request().catch(({ code }) => ({ status: code, body: '' }));
      seen.add(`${status}`);
      if (status === 201) acknowledged.push(JSON.parse(body).id);
      if (status === 'ECONNREFUSED') break; // nobody listens any more: the port may soon be another program's
    }
  });
  while (acknowledged.length < 200) await wait(5);
  const ms = await stoppingMs(server);
  assert.ok(ms < MAX_STOP_MS, `stopped after ${ms} ms`);
  isOver = true;
  await Promise.all(working);
  // Whoever connects in the moment in which nobody listens any more is reset or refused by the kernel, and was not read.
  const usual = ['200', '201', '503', 'ECONNREFUSED', 'ECONNRESET'];
  assert.deepEqual(
    [...seen].filter((what) => !usual.includes(what)),
    [],
  );
  assert.equal(new Set(acknowledged).size, acknowledged.length);
  const [ask] = connect(t, (await serve('--threads 2')).url, 1);
  for (const id of acknowledged) assert.equal((await ask('GET', `/pets/${id}`, { key })).status, 200);
});

test('what is under way at SIGTERM is finished, on every thread', options, async (t) => {
  const { headers, serve } = await workplace(t);
  const key = (await headers()).authorization.slice('Bearer '.length);
  const server = await serve('--threads 3');
  const bytes = requestsOf(key).addPet('Expect: 100-continue\r\n');
  const stopping = new Promise<void>((resolve) => {
    server.process.stderr!.on('data', () => server.stderr().includes('"stopping"') && resolve());
  });
  const port = Number(new URL(server.url).port);
  const asking = each(24).map(async () => {
    const client = net.connect(port, '127.0.0.1').setEncoding('latin1');
    client.write(bytes.slice(0, -9));
    assert.match((await once(client, 'data'))[0], /^HTTP\/1\.1 100 /, 'its body is wanted, so it is under way');
    return client;
  });
  const clients = await Promise.all(asking);
  const ended = server.stop();
  await stopping;
  const replies = clients.map((client) => {
    client.write(bytes.slice(-9));
    return text(client);
  });
  for (const reply of replies) assert.match(await reply, /^HTTP\/1\.1 201 .*\r\nConnection: close\r\n/s);
  assert.equal((await ended).exit, 0);
});

test('a thread that dies takes the process with it, with status 1 and its error in the log', options, async (t) => {
  // A preload is the way into a thread of it; the same code is tried from the bundle.
  if (process.env.PETSTORE_TEST_PROGRAM) return t.skip('NODE_OPTIONS have no way into the binary');
  const { at, serve, cwd } = await workplace(t);
  const preload = `const { isMainThread } = require('node:worker_threads');
    const { existsSync } = require('node:fs');
    if (!isMainThread) setInterval(() => {
      if (existsSync(${JSON.stringify(at('die'))})) throw new Error('a test ends this thread');
    }, 20);`;
  await writeFile(at('preload.cjs'), preload);
  const server = await serve('--threads 2', { cwd, env: { NODE_OPTIONS: `--require ${at('preload.cjs')}` } });
  await writeFile(at('die'), '');
  const { exit, stderr } = await server.ended;
  assert.equal(exit, 1);
  assert.match(stderr, /"level":"error","message":"a bug ended the process","error":"Error: a test ends this thread/);
  assert.equal(stderr.match(/a bug ended/g)!.length, 1);
});

test('too few descriptors for so many threads, and too small a heap, are said in words', options, async (t) => {
  const { after } = await workplace(t);
  const few = await after('ulimit -n 55', 'serve --threads 8 --port 0');
  assert.deepEqual([few.exit, /"a bug/.test(few.stderr)], [1, false], few.stderr);
  assert.match(few.stderr, /no file descriptors are left|too many open files/);
  for (const code of ['EMFILE', 'ENFILE']) {
    const failure = Object.assign(new Error(`Worker initialization failure: ${code}`), {
      code: 'ERR_WORKER_INIT_FAILED',
    });
    assert.match(wantOf(failure)!, /^a thread could not start: no file descriptors are left.* fewer --threads$/);
  }
  const full = Object.assign(new Error('JS heap out of memory'), { code: 'ERR_WORKER_OUT_OF_MEMORY' });
  assert.match(wantOf(full)!, /^a thread has used up its heap: .*--max-old-space-size.*--max-store-mb$/);
  assert.equal(wantOf(new Error('anything else')), undefined);
});

test('the port is one: no other server gets a share of it, on several threads or on one', options, async (t) => {
  const { run, serve } = await workplace(t);
  const refused = async (line: string, url: string) => {
    const { host, port } = new URL(url);
    const { exit, stderr } = await run(`serve ${line} --port ${port} --data other`);
    assert.deepEqual([exit, stderr.includes(`${host} is in use by another program`)], [1, true], stderr);
  };
  const server = await serve('--threads 2');
  await refused('--threads 1', server.url);
  await refused('--threads 2', server.url);
  assert.equal((await server.stop()).exit, 0);
  const alone = await serve('--threads 1');
  await refused('--threads 2', alone.url);
});

test('what --threads does not go with is said, with status 2', async (t) => {
  const { run } = await workplace(t);
  const rows: [line: string, says: string][] = [
    ['--threads 0', '--threads cannot be "0": give a whole number, 1 to 64'],
    ['--threads 65', 'give a whole number, 1 to 64'],
    ['--threads 2 --lab --environment staging', '--threads above 1 does not go with --lab'],
    ['--threads 2 --store postgres://x@127.0.0.1/y', '--threads above 1 does not go with --store'],
    ...(NO_THREADS ? [['--threads 2', 'needs Node 22.12 or newer'] as [string, string]] : []),
  ];
  for (const [line, says] of rows) {
    const { exit, stderr } = await run(`serve --port 0 ${line}`);
    assert.deepEqual([exit, stderr.includes(says)], [2, true], stderr);
  }
});
