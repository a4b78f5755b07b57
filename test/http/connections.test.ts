/** How many connections there can be, whose they are, and who is ended first; and how long one may stay unused. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { type TestContext, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { connectionOf } from '../../src/http/connection.ts';
import type { Refused } from '../../src/http/connections.ts';
import { serving, temporary } from '../program.ts';
import { assertError, closed, exchange, exchangeOne, requestsOf } from '../raw.ts';
import { serviceFor, type TestService } from '../service.ts';

const MAX_CONNECTIONS = 10_000;
const MAX_CONNECTIONS_OF_ADDRESS = 2_000;
const HEAD_MS = 10_000;
const MAX_HEAD_MS = 12_000;
const REQUEST_MS = 15_000;
const LINGER_MS = 1_000;
const IDLE_GRACE_MS = 300;
const READY_MAX_MS = 1_000;
const READY_TRIES = 20;

/** On a busy machine what has happened at one end is seen late at the other. Gives whether it was seen at all. */
async function until(isSo: () => boolean, maxMs = 30_000): Promise<boolean> {
  const end = performance.now() + maxMs;
  while (!isSo() && performance.now() < end) await wait(5);
  return isSo();
}

/** Silent connections from a loopback address, which end with the test. */
function opener(t: TestContext, port: number, service?: TestService) {
  let taken = 0;
  for (const event of ['connection', 'drop']) service?.app.server.on(event, () => taken++);
  const sockets: net.Socket[] = [];
  t.after(() => {
    for (const socket of sockets) socket.destroy();
  });
  return async (count: number, localAddress: string): Promise<net.Socket[]> => {
    const before = taken;
    const opened = Array.from({ length: count }, () => net.connect({ port, host: '127.0.0.1', localAddress }));
    for (const socket of opened) socket.on('error', () => {}).resume();
    sockets.push(...opened);
    await Promise.all(opened.map((socket) => new Promise((done) => socket.once('connect', done).once('close', done))));
    if (service) await until(() => taken >= before + count); // the kernel has taken them before the service has
    return opened;
  };
}

/** How long /readyz takes from another address. A busy machine makes it longer, never shorter: the best of some tries. */
async function leastReadyMs(port: number, localAddress: string): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let tries = 0; tries < READY_TRIES && least > READY_MAX_MS; tries++)
    least = Math.min(least, await readyMs(port, localAddress));
  return least;
}

async function readyMs(port: number, localAddress: string): Promise<number> {
  const began = performance.now();
  const [reply] = await once(
    http.get({ port, host: '127.0.0.1', localAddress, path: '/readyz', agent: false }),
    'response',
  );
  await once(reply.resume(), 'end');
  assert.equal(reply.statusCode, 200);
  return performance.now() - began;
}

const refusedBy = ({ app }: TestService): Refused => ({ ...app.connections.refused });
const openOf = (sockets: net.Socket[]) => sockets.filter((socket) => !socket.destroyed).length;

test('one address has a fifth of the connections, and others are served throughout', async (t) => {
  const service = await serviceFor(t);
  assert.equal(service.app.server.maxConnections, MAX_CONNECTIONS);
  const open = opener(t, service.port, service);
  const times: number[] = [];
  const all: net.Socket[] = [];
  for (let i = 0; i < 8; i++) {
    all.push(...(await open(300, '127.0.0.2')));
    times.push(await leastReadyMs(service.port, '127.0.0.3'));
  }
  assert.ok(Math.max(...times) <= READY_MAX_MS, `/readyz after ${times.join(', ')} ms`);
  while (refusedBy(service).address < 400) await wait(5);
  assert.deepEqual(refusedBy(service), { maximum: 0, address: 400, pressure: 0, system: 0 });
  while (openOf(all) > MAX_CONNECTIONS_OF_ADDRESS) await wait(5);
  for (const socket of all.slice(0, 10)) socket.destroy();
  await until(() => service.app.connections.open.size <= MAX_CONNECTIONS_OF_ADDRESS - 10);
  assert.equal(openOf(await open(10, '127.0.0.2')), 10, 'those that ended count no more');
});

test('the kernel has room for a crowd, so that nobody is told to come again in a second', async (t) => {
  const mostHere = Number(readFileSync('/proc/sys/net/core/somaxconn', 'utf8'));
  if (mostHere < 2_000) return t.skip(`the kernel keeps ${mostHere} connections waiting (net.core.somaxconn)`);
  const server = await serving(t, ['--data', await temporary(t)]);
  server.process.kill('SIGSTOP'); // so that the kernel alone takes them
  const port = Number(new URL(server.url).port);
  let connected = 0;
  const sockets = Array.from({ length: 1_500 }, () => net.connect(port, '127.0.0.1', () => connected++));
  for (const socket of sockets) socket.on('error', () => {});
  const areAll = await until(() => connected === sockets.length, 60_000);
  server.process.kill('SIGCONT');
  for (const socket of sockets) socket.destroy();
  assert.ok(areAll, `${connected} of ${sockets.length} while the service did nothing`);
});

test('behind a proxy addresses are not told apart', async (t) => {
  const service = await serviceFor(t, { trustProxy: 1, maxConnections: 50 });
  const open = opener(t, service.port, service);
  assert.equal(openOf(await open(40, '127.0.0.2')), 40);
});

test('under pressure those without a good key end, the oldest first: after a second, in a crowd at once', async (t) => {
  const service = await serviceFor(t, { trustProxy: 1, maxConnections: 100 });
  const { port, key, clock } = service;
  const { get } = requestsOf(key);
  const open = opener(t, port, service);
  const sets: Record<string, net.Socket[]> = {};
  const left = () => Object.fromEntries(Object.entries(sets).map(([name, sockets]) => [name, openOf(sockets)]));
  const become = async (ended: number, wanted: Record<string, number>) => {
    await until(() => refusedBy(service).pressure >= ended && isDeepStrictEqual(left(), wanted));
    await wait(50); // and no more than those
    assert.deepEqual([refusedBy(service).pressure, left()], [ended, wanted]);
  };
  const say = async (bytes: string, sockets: net.Socket[]) => {
    for (const socket of sockets) {
      socket.write(bytes);
      await Promise.race([once(socket, 'data'), closed(socket)]);
    }
    return sockets;
  };
  sets.bad = await say(get().replace('Bearer p', 'Bearer q'), await open(1, '127.0.0.2'));
  sets.good = await say(get(), await open(40, '127.0.0.2'));
  sets.silent = await open(39, '127.0.0.2');
  clock.advance(1_000);
  sets.young = await open(10, '127.0.0.3');
  await become(10, { bad: 0, good: 40, silent: 30, young: 10 });
  sets.younger = await open(40, '127.0.0.4');
  await become(40, { bad: 0, good: 40, silent: 0, young: 10, younger: 40 });
  sets.last = await open(5, '127.0.0.5');
  await become(45, { bad: 0, good: 40, silent: 0, young: 5, younger: 40, last: 5 });
  for (const name of ['young', 'younger', 'last'])
    await say(
      get(),
      sets[name].filter((socket) => !socket.destroyed),
    );
  sets.newest = await say(get(), await open(1, '127.0.0.6'));
  await become(45, { bad: 0, good: 40, silent: 0, young: 5, younger: 40, last: 5, newest: 1 });
});

test('a key that ends or is beyond its limits keeps no connection under pressure, and does within them again', async (t) => {
  const service = await serviceFor(t, { trustProxy: 1, maxConnections: 100 });
  const { port, clock, makeKey, store } = service;
  const open = opener(t, port, service);
  const ask = async (key: string, sockets: net.Socket[]) => {
    for (const socket of sockets) {
      socket.write(requestsOf(key).get());
      await Promise.race([once(socket, 'data'), closed(socket)]);
    }
    return sockets;
  };
  const [many, few, gone] = [
    await makeKey('enterprise', { perMinute: 50, perDay: 5_000 }),
    await makeKey('enterprise', { perMinute: 30, perDay: 5_000 }),
    await makeKey(),
  ];
  const ended = await ask(gone.text, await open(20, '127.0.0.2'));
  await store.write((ahead) => ({ op: 'setKey', key: { ...ahead.keys.get(gone.key.id)!, revokedAt: 1 } }));
  await ask(gone.text, ended);
  const limited = await ask(few.text, await open(30, '127.0.0.2'));
  const kept = await ask(many.text, await open(30, '127.0.0.2'));
  await ask(few.text, limited);
  clock.advance(1_000);
  await open(20, '127.0.0.3');
  await until(() => refusedBy(service).pressure >= 20 && openOf(ended) === 0); // the clients see it a moment later
  assert.deepEqual([openOf(ended), openOf(limited), openOf(kept)], [0, 30, 30], 'strangers for longest end first');
  clock.advance(60_000);
  await ask(few.text, limited.slice(0, 5));
  await open(40, '127.0.0.4');
  await until(() => openOf(limited) <= 5);
  assert.deepEqual([openOf(limited), openOf(kept)], [5, 30]);
});

test('connections beyond the maximum are counted', async (t) => {
  const service = await serviceFor(t, { trustProxy: 1, maxConnections: 10 });
  const { port, key } = service;
  const open = opener(t, port, service);
  for (const count of [9, 1]) {
    for (const socket of await open(count, '127.0.0.2')) {
      socket.write(requestsOf(key).get());
      await once(socket, 'data');
    }
  }
  await open(3, '127.0.0.2');
  while (refusedBy(service).maximum < 3) await wait(5);
  assert.equal(refusedBy(service).maximum, 3);
});

test('with few descriptors fewer connections are taken, the store still works, and the log and the metrics tell', async (t) => {
  const before = ['bash', '-c', 'ulimit -n 160 && exec "$@"', 'bash'];
  const args = [
    '--data',
    await temporary(t),
    '--first-key',
    'business',
    '--metrics',
    '127.0.0.1:0',
    '--trust-proxy',
    '1',
  ];
  const server = await serving(t, args, { before });
  const port = Number(new URL(server.url).port);
  const { addPet } = requestsOf(server.key);
  const first = net.connect(port, '127.0.0.1');
  first.write(addPet());
  await once(first, 'data');
  const sockets = await opener(t, port)(100, '127.0.0.2');
  await until(() => openOf(sockets) <= 32);
  assert.ok(openOf(sockets) <= 32, `${openOf(sockets)} of them are open`);
  first.write(addPet());
  assert.match(String(await once(first, 'data')), /^HTTP\/1.1 201 /);
  const metrics = /"metrics":"([^"]+)"/.exec(server.stderr())![1];
  const told = await (await fetch(metrics)).text();
  const counts = [...told.matchAll(/petstore_connections_refused_total\{bound="\w+"\} (\d+)/g)].map(([, n]) =>
    Number(n),
  );
  assert.equal(counts.length, 4);
  assert.ok(counts.reduce((a, b) => a + b) >= 60, `${counts}`);
  while (!server.stderr().includes('connections were refused')) await wait(50);
  await server.stop();
  assert.match(server.stderr(), /only 32 connections are taken at once: raise the limit of open files/);
  assert.equal(server.stderr().match(/connections were refused; counts since the start/g)?.length, 1);
});

test('/metrics is told to an address, to localhost and to its own name alone', async (t) => {
  const args = ['--data', await temporary(t), '--metrics', 'localhost:0'];
  const server = await serving(t, args);
  while (!server.stderr().includes('"listening"')) await once(server.process.stderr!, 'data');
  const { host: metrics } = new URL(/"metrics":"([^"]+)"/.exec(server.stderr())![1]);
  const [hostname, port] = [metrics.replace(/:\d+$/, ''), metrics.replace(/.*:/, '')];
  const own = (await import('node:os')).hostname();
  const ask = async (name: string) => {
    const options = { host: hostname.replace(/[[\]]/g, ''), port, path: '/metrics', headers: { host: name } };
    const [reply] = await once(http.get(options), 'response');
    reply.resume();
    return reply.statusCode;
  };
  for (const name of ['127.0.0.1:9', '[::1]:9', '10.0.0.1', 'localhost', 'LOCALHOST:80', own])
    assert.equal(await ask(name), 200, name);
  for (const name of ['rebound.example', 'localhost.example:9', '127.0.0.1.example'])
    assert.equal(await ask(name), 421, name);
});

test('a connection may stay unused for --keep-alive seconds, and every reply says so', async (t) => {
  const service = await serviceFor(t, { keepAlive: 2 });
  const { get, addPet } = requestsOf(service.key);
  const early = addPet().replace(/^POST/, 'PUT').slice(0, -1); // told before the body is there
  for (const bytes of [get(), addPet(), early]) {
    const [reply] = await exchange(service.port, bytes, { replies: 1 });
    assert.equal(reply.headers.get('keep-alive'), 'timeout=2', bytes);
  }
  const accepted = once(service.app.server, 'connection');
  const client = net.connect(service.port, '127.0.0.1').resume();
  const [socket] = (await accepted) as [net.Socket];
  // Of two timers of one process the shorter ends first, however busy the machine is: this one began before it is unused.
  const isClosedEarly = wait(1_500).then(() => socket.destroyed);
  client.write(get());
  await once(client, 'data');
  assert.equal(await isClosedEarly, false);
  await Promise.race([closed(socket), wait(8_000)]);
  assert.equal(socket.destroyed, true);
});

test('a request is answered that came while its connection could stay unused, though the process stood still past that', async (t) => {
  const service = await serviceFor(t, { keepAlive: 1 });
  const { get } = requestsOf(service.key);
  const connect = () => net.connect(service.port, '127.0.0.1');
  const reply = (client: net.Socket) =>
    Promise.race([once(client, 'data').then(String, () => 'a reset'), closed(client).then(() => 'no reply')]);
  const accepted = once(service.app.server, 'connection');
  const silent = connect();
  await accepted;
  const used = connect();
  used.write(get());
  assert.match(await reply(used), /^HTTP\/1\.1 200 /);
  const replies = [silent, used].map((client) => {
    client.write(get()); // the kernel has it at once
    return reply(client);
  });
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, HEAD_MS + 500);
  for (const one of await Promise.all(replies)) assert.match(one, /^HTTP\/1\.1 200 /);
  await Promise.all([closed(silent), closed(used)]); // unused from here on
});

/** The milliseconds told of a head that did not end, on a connection that opened `ms` before. */
async function toldOfHead(t: TestContext, ms: number): Promise<number> {
  let told = Number.NaN;
  const service = await serviceFor(t, { onAnswered: (answered) => (told = answered.ms) });
  const [socket] = await opener(t, service.port, service)(1, '127.0.0.2');
  service.clock.advance(ms);
  socket.write('GET /v1/pets HTTP/1.1\r\n');
  await Promise.race([closed(socket), wait(MAX_HEAD_MS + 4_000)]); // by then it is told: both are timers of this process
  return told;
}

test('a head has 10 s to arrive, and a 408 tells truly how long that took, and of which request it was', {
  timeout: 240_000,
}, async (t) => {
  const server = await serving(t, ['--data', await temporary(t), '--first-key', 'free', '--access-log']);
  const port = Number(new URL(server.url).port);
  const { get, addPet } = requestsOf(server.key);
  const began = performance.now();
  const refused = async (bytes: string) => {
    const reply = await exchangeOne(port, bytes);
    assertError(reply, 408, 'request_timeout');
    return performance.now() - began;
  };
  const [head, body, ofLongQuiet] = await Promise.all([
    refused(get().slice(0, -2)),
    refused(addPet().slice(0, -2)),
    toldOfHead(t, 60_000),
  ]);
  assert.equal(ofLongQuiet, MAX_HEAD_MS, 'not the time before it, in which nothing came');
  const { stderr } = await server.stop();
  const lines = Array.from(stderr.matchAll(/.*"level":"access".*/g), ([line]) => JSON.parse(line));
  assert.deepEqual(
    lines.map(({ status, method, key }) => [status, method, key]),
    [
      [408, undefined, undefined],
      [408, 'POST', 'k1'],
    ],
  );
  for (const [at, [least, seen]] of [
    [HEAD_MS, head],
    [REQUEST_MS, body],
  ].entries()) {
    const { ms } = lines[at]; // no less than its time, and no more than has passed here: the client waits on either side
    assert.ok(ms > least / 2 && ms < seen + 1, `${ms} ms are told of ${seen} ms`);
  }
});

test('replies that were read count no longer: not on their connection, and not among all', async (t) => {
  const { app, port, key, store } = await serviceFor(t);
  for (let id = 1; id <= 100; id++) {
    await store.write(() => ({ op: 'addPet', pet: { id, name: '🐈'.repeat(255), categoryId: id, status: 'sold' } }));
  }
  const [connected] = [once(app.server, 'connection')];
  const page = requestsOf(key).get('', '/v1/pets?limit=100');
  const client = net.connect(port, '127.0.0.1');
  const [socket] = (await connected) as [net.Socket];
  let received = 0;
  client.on('data', ({ length }) => (received += length));
  for (let sent = 1; received < 4 * 1024 * 1024; sent++) {
    const before = received;
    client.write(page.repeat(2));
    while (received < before + 200_000 && !client.destroyed) await wait(1);
    assert.equal(client.destroyed, false, `after ${received} bytes in ${2 * sent} replies`);
  }
  const { owner } = connectionOf(socket);
  await until(() => owner.unsent + owner.unanswered === 0); // the client has the bytes before the service knows that
  assert.deepEqual([owner.unsent, owner.unanswered], [0, 0]);
});

// While its replies wait node:http reads no further, so nobody gets here: it is the second line.
test('a connection with more than 2 MiB of unsent replies is ended by its next request', async (t) => {
  for (const [more, survives] of [
    [0, true],
    [1, false],
  ] as const) {
    const { app, port, key, store } = await serviceFor(t);
    let finish = () => {};
    const write = store.write.bind(store);
    store.write = (decide) => new Promise<void>((go) => (finish = go)).then(() => write(decide));
    const { get, addPet } = requestsOf(key);
    const client = net.connect(port, '127.0.0.1').on('error', () => {});
    let came = '';
    client.on('data', (part) => (came += part));
    const requested = once(app.server, 'request');
    client.write(addPet());
    const [{ socket }] = await requested;
    const connection = connectionOf(socket);
    connection.countUnsent(connection.pending[0], 2 * 1024 * 1024 + more);
    client.write(get('Connection: close\r\n'));
    if (survives) await until(() => connection.pending.length === 2);
    while (!client.destroyed && !client.readableEnded) {
      finish();
      await wait(5);
    }
    assert.equal(came.match(/HTTP\/1\.1 20[01]/g)?.length, survives ? 2 : undefined);
  }
});

test('a request on an idle connection just after the service began to stop gets its refusal, and no reset', async (t) => {
  let now = performance.now();
  t.mock.method(performance, 'now', () => now);
  const { app, port, key } = await serviceFor(t);
  const { get } = requestsOf(key);
  const client = net.connect(port, '127.0.0.1');
  let text = '';
  client.on('data', (part) => (text += part));
  client.write(get());
  while (!text.includes('[]')) await wait(1);
  const drained = app.drain(2_000);
  now += IDLE_GRACE_MS - 1;
  await wait(100); // idle connections are looked for every 20 ms
  client.write(get());
  await once(client, 'end');
  assert.match(text, /HTTP\/1\.1 503 [\s\S]*Connection: close[\s\S]*"code":"unavailable"/);
  await drained;
});

test('behind its last reply a connection is read for a second, then it is closed, also if its client never closes', async (t) => {
  const { app, port, key } = await serviceFor(t);
  const { get, addPet } = requestsOf(key);
  for (const bytes of [addPet().replace('Content-Length:', 'Content-Length: x'), get('Connection: close\r\n')]) {
    const accepted = once(app.server, 'connection');
    const client = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true }).on('error', () => {});
    t.after(() => client.destroy());
    const [socket] = (await accepted) as [net.Socket];
    const isClosed = closed(socket).then(() => true);
    client.resume().write(bytes);
    await once(client, 'end');
    assert.ok(await Promise.race([isClosed, wait(8 * LINGER_MS, false, { ref: false })]));
  }
});

test('behind its last reply a connection is closed as soon as its client has closed', async (t) => {
  const realTimeout = globalThis.setTimeout;
  const lingering = (run: () => void, ms?: number, ...words: []) =>
    realTimeout(run, ms === LINGER_MS ? 600 * LINGER_MS : ms, ...words);
  t.mock.method(globalThis, 'setTimeout', lingering as typeof setTimeout);
  const { app, port, key } = await serviceFor(t);
  const { get, addPet } = requestsOf(key);
  const close = 'Connection: close\r\n';
  for (const bytes of [get(close), get('', '/v1/pets', '1.0'), addPet(close), 'garbage\r\n\r\n']) {
    const accepted = once(app.server, 'connection');
    const client = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    t.after(() => client.destroy());
    const [socket] = (await accepted) as [net.Socket];
    const isClosed = closed(socket);
    client.resume().write(bytes);
    await once(client, 'end');
    assert.equal(socket.destroyed, false, 'what its client still sends is read');
    client.end();
    await isClosed;
  }
  assert.equal(app.connections.open.size, 0);
});

test('a time-out behind the last reply of a connection does not cost its client that reply', async (t) => {
  const { app, port, key } = await serviceFor(t);
  const { get } = requestsOf(key);
  const accepted = once(app.server, 'connection');
  const client = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  t.after(() => client.destroy());
  const [socket] = (await accepted) as [net.Socket];
  let text = '';
  client.on('data', (part) => (text += part));
  client.write(get() + get('Transfer-Encoding: chunked\r\n'));
  await once(client, 'end');
  assert.match(text, /^HTTP\/1\.1 200 [\s\S]*HTTP\/1\.1 400 [\s\S]*Connection: close/);
  // As node:http does when 15 s have passed since the head, of which the replies before may have taken any part.
  app.server.emit('clientError', Object.assign(new Error(), { code: 'ERR_HTTP_REQUEST_TIMEOUT' }), socket);
  assert.equal(socket.destroyed, false);
  client.end('1\r\n \r\n0\r\n\r\n');
  await closed(socket);
});
