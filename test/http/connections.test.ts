/** How many connections there can be, how long one may stay unused, and how they end with the service. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import { type TestContext, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { assertError, closed, exchange, requestsOf, told } from '../raw.ts';
import { serviceFor, type TestService } from '../service.ts';

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

const openOf = (sockets: net.Socket[]) => sockets.filter((socket) => !socket.destroyed).length;
const until = async (isSo: () => boolean) => {
  while (!isSo()) await wait(5);
};

test('one address has 2,000 of 10,000 connections; those beyond are counted, and told once a minute', async (t) => {
  const warned: unknown[][] = [];
  const service = await serviceFor(t, { warn: (...line) => warned.push(line) });
  assert.equal(service.service.server.maxConnections, 10_000);
  const open = opener(t, service);
  const all = await open(2_100, '127.0.0.2');
  await until(() => openOf(all) === 2_000);
  assert.deepEqual(service.service.counts.refused, { maximum: 0, address: 100 });
  const [other] = await open(1, '127.0.0.3');
  other.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
  assert.match(String(await once(other, 'data')), /^HTTP\/1.1 200 /);
  for (const socket of all.filter(({ destroyed }) => !destroyed).slice(0, 10)) socket.destroy();
  await until(() => service.service.counts.connections <= 1_991);
  const more = await open(10, '127.0.0.2');
  await until(() => service.service.counts.connections === 2_001);
  assert.equal(openOf(more), 10, 'those that ended count no more');
  await until(() => warned.length > 0);
  assert.equal(warned.length, 1, 'the clock stands still');
  assert.match(JSON.stringify(warned), /connections were refused; counts since the start.*"maximum":0,"address":[1-9]/);
});

test('behind a proxy addresses are not told apart, and those beyond the maximum are counted', async (t) => {
  const service = await serviceFor(t, { trustProxy: 1, maxConnections: 50 });
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
  const accepted = once(service.service.server, 'connection');
  const client = net.connect(service.port, '127.0.0.1').resume();
  const [socket] = (await accepted) as [net.Socket];
  // Of two timers of one process the shorter ends first, however busy the machine is: this one began before it is unused.
  const isClosedEarly = wait(1_500).then(() => socket.destroyed);
  client.write(get());
  await once(client, 'data');
  assert.equal(await isClosedEarly, false);
  await closed(socket);
});

test('a drain finishes what is under way, refuses what comes late, and closes what is idle', async (t) => {
  let go = () => {};
  let isHeld = true;
  const onBatch = () => (isHeld ? new Promise<void>((resolve) => (go = resolve)) : undefined);
  const service = await serviceFor(t, { starting: false, onBatch: () => undefined });
  const { key, port } = service;
  const { get, addPet } = requestsOf(key);
  const write = service.store.write.bind(service.store);
  service.store.write = async (work) => {
    await onBatch();
    return write(work);
  };
  const idle = net.connect(port, '127.0.0.1').resume();
  const half = net.connect(port, '127.0.0.1').resume();
  half.write(get().slice(0, -2));
  const late = net.connect(port, '127.0.0.1').setEncoding('latin1');
  late.write(get());
  await once(late, 'data');
  const underWay = exchange(port, addPet().repeat(2));
  await wait(100);
  const closing = [idle, half].map(closed);
  const drained = service.service.drain(60_000);
  late.write(get());
  const [refusal] = await once(late, 'data');
  assert.match(refusal, /^HTTP\/1\.1 503 [\s\S]*Connection: close[\s\S]*the service is shutting down/);
  await Promise.all(closing);
  isHeld = false;
  go();
  assert.deepEqual(told(await underWay), ['201 keep-alive', '201 close']);
  await drained;
});

test('a drain ends in time, whatever clients have begun', async (t) => {
  const service = await serviceFor(t);
  const { addPet } = requestsOf(service.key);
  const half = net.connect(service.port, '127.0.0.1').on('error', () => {});
  half.write(addPet().slice(0, -2));
  await wait(100);
  const began = performance.now();
  await service.service.drain(1_000);
  const ms = performance.now() - began;
  assert.ok(ms >= 990, `after ${ms} ms`);
});

test('a request half-way is told 408 of its own, with the limits of its key', { timeout: 120_000 }, async (t) => {
  const { port, key } = await serviceFor(t);
  const [reply] = await exchange(port, requestsOf(key).addPet().slice(0, -2));
  assertError(reply, 408, 'request_timeout');
  assert.equal(reply.headers.get('x-ratelimit-limit'), '1000000');
});
