/** Clients that ask for more than they read: what is made of that is bounded, and others are served meanwhile. */
import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import net, { type AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { Connections, type Outgoing } from '../../src/http/connection.ts';
import type { Incoming } from '../../src/http/messages.ts';
import { jsonReply, send } from '../../src/http/reply.ts';
import { createServer } from '../../src/http/server.ts';
import { closed, exchange } from '../raw.ts';
import { startService } from '../service.ts';
import { FLOODED, floods, NO_PROC, startFlooded } from './flood.ts';

const CHUNK_BYTES = 65_536;
const MAX_UNANSWERED = 24;
/** The service itself gives up waiting after 10 s; the rest is for a machine that is busy with other things. */
const MAX_STOP_MS = 20_000;
const UNREAD_MS = 200;
/** Connections are looked at twice in that time, and so at least once in this. */
const LOOKED_AT_MS = 250;

async function start(t: TestContext, onAnswered?: () => void) {
  const service = await startService({ onAnswered });
  t.after(() => service.close());
  return { service, key: (await service.makeKey()).text };
}

/** How many requests node:http hands over until the end of the test. */
function countMessages(t: TestContext): { made: number } {
  const count = { made: 0 };
  const add = () => count.made++;
  subscribe('http.server.request.start', add);
  t.after(() => unsubscribe('http.server.request.start', add));
  return count;
}

test('of a chunk full of requests only so many are made, one is answered, and the connection ends', async (t) => {
  let answered = 0;
  const { service, key } = await start(t, () => answered++);
  const count = countMessages(t);
  for (const [name, request] of Object.entries(FLOODED(key))) {
    count.made = answered = 0;
    const socket = net.connect(service.port, '127.0.0.1').on('error', () => {});
    socket.resume().write(request.repeat(CHUNK_BYTES / request.length));
    await closed(socket);
    assert.ok(count.made <= MAX_UNANSWERED, `${name}: ${count.made}`);
    assert.equal(answered, 1, name);
    if (name === 'pages') assert.equal(count.made, MAX_UNANSWERED);
  }
});

test('requests that wait for the disk are as many at most', async (t) => {
  const { service, key } = await start(t);
  const body = '{"name":"Rex","categoryId":3}';
  const head = `POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\n`;
  const socket = net.connect(service.port, '127.0.0.1').on('error', () => {});
  socket.resume().write(`${head}Content-Length: ${body.length}\r\n\r\n${body}`.repeat(200));
  await closed(socket);
  const headers = { 'content-type': 'application/json' };
  assert.equal((await service.fetch('/v1/pets', { key, method: 'POST', headers, body })).status, 201);
  assert.equal(service.store.read.counts().pets, MAX_UNANSWERED + 1, 'writes are kept in order');
});

test('what is within the bounds loses nothing, sixteen of the largest pages neither', async (t) => {
  const { service, key } = await start(t);
  const pet = (i: number) => ({ name: `${i}${'🐈'.repeat(250)}`, categoryId: i, status: 'sold' as const });
  for (let i = 1; i <= 100; i++) {
    await service.store.write((ahead) => ({ op: 'addPet', pet: { id: ahead.counters.nextPetId, ...pet(i) } }));
  }
  const get = `GET /v1/pets?limit=100 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`;
  const last = get.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n');
  for (let round = 0; round < 3; round++) {
    const replies = await exchange(service.port, get.repeat(15) + last);
    assert.equal(replies.length, 16);
    for (const { status, body } of replies) assert.equal(`${status} ${JSON.parse(body).length}`, '200 100');
  }
  const replies = await exchange(service.port, get.replace('limit=100', 'limit=1').repeat(MAX_UNANSWERED), {
    replies: MAX_UNANSWERED,
  });
  assert.deepEqual(new Set(replies.map(({ status }) => status)), new Set([200]));
});

test('a client that has stopped reading is cut off, sooner when all together leave too much unread', {
  skip: NO_PROC,
}, async (t) => {
  let now = 0;
  const server = http.createServer((_req, res) => res.end(Buffer.alloc(50_000_000)));
  const connections = new Connections(server, () => now, UNREAD_MS);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const unread = async () => {
    const client = net.connect(port, '127.0.0.1').pause();
    t.after(() => client.destroy());
    client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    const [socket] = (await once(server, 'connection')) as [net.Socket];
    while (socket.writableLength === 0) await wait(1);
    await wait(LOOKED_AT_MS); // since when it is stuck is known now
    return socket;
  };
  const patient = await unread();
  now = UNREAD_MS - 1;
  await wait(LOOKED_AT_MS);
  assert.equal(patient.destroyed, false);
  now = UNREAD_MS;
  await closed(patient);

  const full = await unread();
  now += UNREAD_MS - 1;
  connections.unsent += 2 ** 30;
  await closed(full);
  const ours = new RegExp(` 0100007F:${port.toString(16).toUpperCase().padStart(4, '0')} \\w+:\\w+ (\\w+) `, 'g');
  const states = [...readFileSync('/proc/net/tcp', 'latin1').matchAll(ours)].map(([, state]) => state);
  assert.deepEqual(states, ['0A'], 'reset, not merely closed: the kernel keeps nothing but who listens');
});

test('what is decided for a client that is gone is no reply that waits to be sent', async (t) => {
  const answers: (() => void)[] = [];
  const about = { id: 'x', limits: '', date: 'now', extra: [] };
  const handle = (req: Incoming, res: Outgoing) =>
    void answers.push(() => void send(req, res, jsonReply(200, '[]'), about));
  const connections = createServer(handle, () => {});
  await once(connections.server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => connections.server.close());
  const socket = net.connect((connections.server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {});
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(20));
  while (answers.length < 20) await wait(1);
  const [connection] = connections.open;
  socket.resetAndDestroy();
  await closed(connection.socket);
  for (const answer of answers) answer();
  assert.deepEqual([connections.unsent, connections.unanswered], [0, 0]);
});

test('floods of every kind: others are served, memory is bounded, and SIGTERM ends it', {
  skip: NO_PROC,
}, async (t) => {
  const server = await startFlooded(t);
  const before = server.residentMB();
  const running = [
    ...Object.values(FLOODED(server.key)).map((request) =>
      floods(t, server, { request, connections: 10, reads: true }),
    ),
    floods(t, server, { request: FLOODED(server.key).pages, connections: 900, reads: false }),
  ];
  await Promise.all(running);
  const end = performance.now() + 2_000;
  let slowestMs = 0;
  while (performance.now() < end) slowestMs = Math.max(slowestMs, await server.healthMs());
  assert.ok(slowestMs < 30_000, `/healthz after ${slowestMs} ms`); // the strict figures are in flood.quiet.test.ts
  const grownMB = server.residentMB() - before;
  assert.ok(grownMB < 200, `+${grownMB} MB`);
  const { exit, stderr } = await server.stop();
  assert.equal(exit, 0);
  const [stopping, stopped] = [...stderr.matchAll(/"time":"([^"]+)".*"stop(?:ping|ped)"/g)].map(([, at]) =>
    Date.parse(at),
  );
  const ms = stopped - stopping;
  assert.ok(ms < MAX_STOP_MS, `stopped after ${ms} ms`);
});
