/** Clients that ask for more than they read, or send more than anybody wants: others are served meanwhile. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { closed } from '../raw.ts';
import { serviceFor } from '../service.ts';
import { endless, flood, NO_PROC, ONE_BYTE, startFlooded } from './flood.ts';

const MAX_GROWN_MB = 200;
const MAX_HEALTH_MS = 2_000;
/** Of a crowd that connects again without pause. Node 26 parses the rest of a packet whose connection has ended. */
const MAX_HEALTH_IN_CROWD_MS = 12_000;
/** The service gives up waiting after 8 s; the rest is for a machine that is busy with other things. */
const MAX_STOP_MS = 60_000;

const requestsFor = (key: string) => [
  'GET /healthz HTTP/1.1\r\nHost:x\r\n\r\n',
  `GET /v1/pets HTTP/1.1\r\nHost:x\r\nAuthorization:Bearer ${key}\r\n\r\n`,
  'GET /v1 HTTP/1.1\r\nHost:x\r\n\r\n',
  'GET / HTTP/1.1\r\n\r\n',
  '?',
];

const FLOODS = {
  '50 that pipeline 64 KiB, and read': (key: string) => ({ requests: requestsFor(key), connections: 50, reads: true }),
  '900 that pipeline, and do not read': (key: string) => ({
    requests: requestsFor(key),
    connections: 900,
    reads: false,
  }),
  '60 endless bodies in chunks of one byte, by one key': (key: string) => {
    return { head: endless(key), requests: [ONE_BYTE], connections: 60, reads: true };
  },
  '60 endless bodies without a key': () => ({ head: endless(), requests: [ONE_BYTE], connections: 60, reads: true }),
};

for (const [name, floodOf] of Object.entries(FLOODS)) {
  test(`${name}: memory is bounded, others are served, SIGTERM ends it`, { skip: NO_PROC }, async (t) => {
    const server = await startFlooded(t);
    await flood(t, { port: server.port, ...floodOf(server.key) });
    const slowest = await server.healthMs(1_500);
    const grown = server.grownMB();
    const stopped = await server.stop();
    t.diagnostic(`/healthz ${slowest} ms, +${Math.round(grown)} MB, stopped in ${Math.round(stopped)} ms`);
    assert.ok(
      slowest < (name.startsWith('900') ? MAX_HEALTH_IN_CROWD_MS : MAX_HEALTH_MS),
      `/healthz after ${slowest} ms`,
    );
    assert.ok(grown < MAX_GROWN_MB, `+${grown} MB`);
    assert.ok(stopped < MAX_STOP_MS, `stopped after ${stopped} ms`);
  });
}

test('a client that reads nothing is cut off by a reset after 30 s, and not before', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const { service, port, store, key } = await serviceFor(t);
  await store.write((tx) => {
    for (let n = 0; n < 100; n++) tx.pets.add({ name: '🐈'.repeat(255), categoryId: 1, status: 'sold' });
  });
  const client = net.connect(port, '127.0.0.1').pause();
  t.after(() => client.destroy());
  const [socket] = (await once(service.server, 'connection')) as [net.Socket];
  const page = `GET /v1/pets?limit=100 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`;
  for (let sent = 0; sent < 500 && socket.writableLength === 0; sent++) {
    client.write(page);
    await wait(5);
  }
  assert.ok(socket.writableLength > 0, 'the kernel takes no more');
  let now = performance.now();
  t.mock.method(performance, 'now', () => now);
  t.mock.timers.tick(1_000); // it is seen to be stuck
  now += 29_000;
  t.mock.timers.tick(1_000);
  assert.equal(socket.destroyed, false);
  const reset = t.mock.method(socket, 'resetAndDestroy');
  now += 1_000;
  t.mock.timers.tick(1_000);
  await closed(socket);
  assert.equal(reset.mock.callCount(), 1, 'the kernel keeps nothing of it');
});
