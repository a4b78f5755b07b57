/** How many connections there can be, how long one may stay unused, and how they end with the service. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { exchange, requestsOf } from '../raw.ts';
import { serviceFor, type TestService } from '../service.ts';
import { until } from '../until.ts';

/** Connections from a loopback address, which end with the test. */
function opener(t: TestContext, { port }: TestService) {
  const sockets: net.Socket[] = [];
  t.after(() => sockets.forEach((socket) => void socket.destroy()));
  return async (count: number, localAddress: string): Promise<net.Socket[]> => {
    const opened: net.Socket[] = [];
    for (let n = 0; n < count; n++) {
      const socket = net.connect({ port, host: '127.0.0.1', localAddress });
      opened.push(socket.on('error', () => {}).resume());
      sockets.push(socket);
      if (n % 100 === 99 || n === count - 1) {
        await new Promise((done) => socket.once('connect', done).once('close', done));
      }
    }
    return opened;
  };
}

/** A client, and the server's socket of its connection. */
async function connected(t: TestContext, { port, service }: TestService) {
  const accepted = once(service.server, 'connection');
  const client = net.connect(port, '127.0.0.1').resume();
  t.after(() => client.destroy());
  const [socket] = (await accepted) as [net.Socket];
  return { client, socket };
}

const openOf = (sockets: net.Socket[]) => sockets.filter((socket) => !socket.destroyed).length;

test('one address has 100 of the 10,000 connections; those beyond are counted, and told once a minute', async (t) => {
  const warned: unknown[][] = [];
  const service = await serviceFor(t, { warn: (...line) => warned.push(line) });
  assert.equal(service.service.server.maxConnections, 10_000);
  const open = opener(t, service);
  const all = await open(150, '127.0.0.2');
  await until(() => openOf(all) === 100);
  assert.deepEqual(service.service.counts.refused, { maximum: 0, address: 50 });
  const [other] = await open(1, '127.0.0.3');
  other.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
  assert.match(String(await once(other, 'data')), /^HTTP\/1\.1 200 /);
  for (const socket of all.filter(({ destroyed }) => !destroyed).slice(0, 10)) socket.destroy();
  await until(() => service.service.counts.connections <= 91);
  const more = await open(10, '127.0.0.2');
  await until(() => service.service.counts.connections === 101);
  assert.equal(openOf(more), 10, 'those that ended count no more');
  assert.equal(warned.length, 1, 'the clock stands still');
  assert.match(JSON.stringify(warned), /connections were refused; counts since the start.*"maximum":0,"address":[1-9]/);
});

test('--connections-per-address sets another number', async (t) => {
  const service = await serviceFor(t, { connectionsPerAddress: 7 });
  const sockets = await opener(t, service)(10, '127.0.0.2');
  await until(() => openOf(sockets) === 7);
  assert.deepEqual(service.service.counts.refused, { maximum: 0, address: 3 });
});

test('behind a proxy addresses are not told apart, and those beyond the maximum are counted', async (t) => {
  const service = await serviceFor(t, { trustProxy: 1 });
  service.service.server.maxConnections = 50;
  const sockets = await opener(t, service)(60, '127.0.0.2');
  await until(() => openOf(sockets) === 50);
  assert.deepEqual(service.service.counts.refused, { maximum: 10, address: 0 });
});

test('a connection may stay unused for --keep-alive seconds, and every reply says so', async (t) => {
  const service = await serviceFor(t, { keepAlive: 2 });
  const { get, addPet } = requestsOf(service.key);
  const early = addPet().replace(/^POST/, 'PUT').slice(0, -1); // answered before the body is there
  for (const bytes of [get(), addPet(), early]) {
    const [reply] = await exchange(service.port, bytes, { replies: 1 });
    assert.equal(reply.headers.get('keep-alive'), 'timeout=2', bytes);
  }
  const began = performance.now();
  const { client } = await connected(t, service);
  client.write(get());
  await once(client, 'close');
  assert.ok(performance.now() - began > 1_900);
});

/** A client that asks for one large page after the other and reads none, until the kernel takes no more. */
async function stuckClient(t: TestContext, { service, port, store, key }: TestService & { key: string }) {
  await store.write((tx) => {
    for (let n = 0; n < 100; n++) tx.pets.add({ name: '🐈'.repeat(255), categoryId: 1, status: 'sold' });
  });
  const client = net.connect(port, '127.0.0.1').pause();
  t.after(() => client.destroy());
  const [socket] = (await once(service.server, 'connection')) as [net.Socket];
  for (let sent = 0; sent < 500 && socket.writableLength === 0; sent++) {
    client.write(requestsOf(key).get('', '/v1/pets?limit=100'));
    await wait(5);
  }
  assert.ok(socket.writableLength > 0, 'the kernel takes no more');
  return { client, socket };
}

test('a client that reads nothing is cut off by a reset after 30 s, and not before', async (t) => {
  const service = await serviceFor(t);
  assert.equal(service.service.server.timeout, 30_000);
  service.service.server.timeout = 1_000; // of connections that begin from now on
  const { socket } = await stuckClient(t, service);
  const reset = t.mock.method(socket, 'resetAndDestroy');
  const began = performance.now();
  if (!socket.destroyed) await once(socket, 'close');
  assert.ok(performance.now() - began > 500);
  assert.equal(reset.mock.callCount(), 1, 'the kernel keeps nothing of it');
  assert.equal(service.service.counts.connections, 0);
});

test('a client that takes a long reply slowly is not cut off', async (t) => {
  const service = await serviceFor(t, { page: 'x'.repeat(32 * 1024 * 1024) }); // no kernel takes it all
  service.service.server.timeout = 1_000;
  const { client, socket } = await connected(t, service);
  client.pause();
  client.write(requestsOf(service.key).get('', '/'));
  for (let part = 0; part < 15; part++) {
    for (let bytes = 0; bytes < 1_000_000; bytes += (await once(client.resume(), 'data'))[0].length);
    client.pause();
    await wait(200);
  }
  assert.equal(socket.destroyed, false);
});

test('a drain closes the sockets of clients that pipeline without end', async (t) => {
  const service = await serviceFor(t);
  const sockets = await Promise.all(Array.from({ length: 8 }, () => connected(t, service)));
  const closed = sockets.map(({ socket }) => once(socket, 'close'));
  const drained = service.service.drain(2_000);
  for (const { client } of sockets)
    client
      .on('error', () => {})
      .resume()
      .write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(1_900));
  await Promise.all([drained, ...closed]);
});

test('a drain ends in time, whatever clients have begun', async (t) => {
  const service = await serviceFor(t);
  const { addPet } = requestsOf(service.key);
  const half = net.connect(service.port, '127.0.0.1').on('error', () => {});
  half.write(addPet().slice(0, -2));
  await wait(100);
  const began = performance.now();
  await service.service.drain(500);
  const ms = performance.now() - began;
  assert.ok(ms >= 490, `after ${ms} ms`);
});

test('a request that reaches a connection while the service stops is refused, and not reset', async (t) => {
  const { service, port, key } = await serviceFor(t);
  const { get } = requestsOf(key);
  const client = net.connect(port, '127.0.0.1');
  client.write(get());
  await once(client, 'data');
  const drained = service.drain(5_000);
  client.write(get());
  assert.match(await text(client), /^HTTP\/1\.1 503 [\s\S]*Connection: close/);
  await drained;
});

test('a connection ends where its client says close, as one of a list', async (t) => {
  const service = await serviceFor(t);
  for (const [value, said] of [
    ['close', 'close'],
    ['x, Close', 'close'],
    ['not-close', 'keep-alive'],
    ['keep-alive', 'keep-alive'],
  ]) {
    const [reply] = await exchange(service.port, `GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: ${value}\r\n\r\n`, {
      replies: 1,
    });
    assert.equal(reply.headers.get('connection'), said, value);
  }
});
