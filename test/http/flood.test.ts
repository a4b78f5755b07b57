/** Clients that ask for more than they read: what is made of that is bounded, and others are served meanwhile. */
import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { EventEmitter, once } from 'node:events';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import net, { type AddressInfo } from 'node:net';
import { test } from 'node:test';
import { setImmediate as immediate, setTimeout as wait } from 'node:timers/promises';
import type { Outgoing } from '../../src/http/connection.ts';
import { Connections, MAX_CONNECTIONS } from '../../src/http/connections.ts';
import type { Incoming } from '../../src/http/messages.ts';
import { endingFor, jsonReply, send } from '../../src/http/reply.ts';
import { createServer } from '../../src/http/server.ts';
import { closed, exchange, requestsOf } from '../raw.ts';
import { serviceFor } from '../service.ts';
import { CHUNK_BYTES, FLOODED, floods, NO_PROC, startFlooded, stoppingMs } from './flood.ts';

const MAX_UNANSWERED = 24;
/** The service itself gives up waiting after 10 s; the rest is for a machine that is busy with other things. */
const MAX_STOP_MS = 60_000;
/** From Node 26 on it takes some 3 s: the rest of what has come is still parsed when a flood is noticed. */
const MAX_WAIT_CPU_MS = 12_000;
const UNREAD_REPLY_MS = 30_000;
const LOOK_EVERY_MS = 2_000;
const UNREAD_MS = 200;
/** Connections are looked at twice in that time, and so at least once in this. */
const LOOKED_AT_MS = 250;

test('of a chunk full of requests only so many are made, one is answered, and the connection ends', async (t) => {
  let [answered, made] = [0, 0];
  const { port, key } = await serviceFor(t, { onAnswered: () => answered++ });
  const count = () => made++; // what node:http hands over
  subscribe('http.server.request.start', count);
  t.after(() => unsubscribe('http.server.request.start', count));
  for (const [name, request] of Object.entries(FLOODED(key))) {
    made = answered = 0;
    const socket = net.connect(port, '127.0.0.1').resume();
    socket.write(request.repeat(CHUNK_BYTES / request.length));
    await closed(socket);
    assert.ok(made <= MAX_UNANSWERED, `${name}: ${made}`);
    assert.equal(answered, 1, name);
    if (name === 'pages') assert.equal(made, MAX_UNANSWERED);
  }
});

test('of writes that are sent at once one is begun, and a flood of them adds nothing more', async (t) => {
  const { port, key, store } = await serviceFor(t);
  const { addPet } = requestsOf(key);
  const socket = net.connect(port, '127.0.0.1').resume();
  socket.write(addPet().repeat(200));
  await closed(socket);
  const [{ status }] = await exchange(port, addPet(), { replies: 1 });
  assert.equal(status, 201);
  assert.equal(store.read.counts().pets, 2, 'writes are kept in order');
});

test('of requests whose connection is ended for its flood no body is kept', async (t) => {
  const { app, port, key } = await serviceFor(t);
  const { get, addPet } = requestsOf(key);
  const { connections } = app;
  let mostBytes = 0;
  const hold = connections.hold.bind(connections);
  connections.hold = (body, bytes) => {
    hold(body, bytes);
    mostBytes = Math.max(mostBytes, connections.bodyBytes);
  };
  const refused = 'POST /v1/pets HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n ';
  for (const waiting of [addPet(), refused]) {
    mostBytes = 0;
    const socket = net.connect(port, '127.0.0.1').resume();
    const [taken] = (await once(app.server, 'connection')) as [net.Socket];
    socket.write(addPet() + waiting.repeat(8) + get().repeat(MAX_UNANSWERED));
    await Promise.all([closed(socket), closed(taken)]);
    assert.ok(mostBytes >= 8, 'they waited with their bodies');
    assert.equal(connections.bodyBytes, 0);
  }
});

test('what is within the bounds loses nothing, sixteen of the largest pages neither', async (t) => {
  const { port, key, store } = await serviceFor(t);
  for (let i = 1; i <= 100; i++) {
    const pet = { id: i, name: '🐈'.repeat(255), categoryId: i, status: 'sold' as const };
    await store.write(() => ({ op: 'addPet', pet }));
  }
  const { get } = requestsOf(key);
  const page = get('', '/v1/pets?limit=100');
  for (let round = 0; round < 3; round++) {
    const replies = await exchange(port, page.repeat(16), { replies: 16 });
    for (const { status, body } of replies) assert.equal(`${status} ${JSON.parse(body).length}`, '200 100');
  }
  const replies = await exchange(port, get().repeat(MAX_UNANSWERED), { replies: MAX_UNANSWERED });
  assert.ok(replies.every(({ status }) => status === 200));
});

test('beyond 20,000 requests or 64 MiB of replies in all a second request that waits ends its connection, not a first', async (t) => {
  for (const [name, most] of [
    ['unanswered', 20_000],
    ['unsent', 64 * 1024 * 1024],
  ] as const) {
    for (const more of [0, 1]) {
      const { app, port, key } = await serviceFor(t);
      const { get } = requestsOf(key);
      const { connections } = app;
      const own = name === 'unanswered' ? 1 : 4_096; // of the first of the two that are sent; its reply is less
      connections[name] = most + (more === 0 ? -own : 1);
      const socket = net.connect(port, '127.0.0.1');
      let text = '';
      socket.setEncoding('latin1').on('data', (part: string) => (text += part));
      socket.on('error', () => {}).write(get() + get('Connection: close\r\n'));
      await closed(socket);
      const replies = text.match(/HTTP\/1\.1 200/g)?.length ?? 0;
      assert.equal(replies === 2, more === 0, `${name}, ${more} more: ${replies} replies`);
      const [first] = await exchange(port, get('Connection: close\r\n'));
      assert.equal(first.status, 200);
    }
  }
});

test('a client that has stopped reading is cut off, sooner when all together leave too much unread', {
  skip: NO_PROC,
}, async (t) => {
  let now = 0;
  const server = http.createServer((_req, res) => res.end(Buffer.alloc(50_000_000)));
  const connections = new Connections(server, {
    begin: () => {},
    now: () => now,
    maxConnections: MAX_CONNECTIONS,
    unreadMs: UNREAD_MS,
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const unread = async () => {
    const client = net.connect(port, '127.0.0.1').pause();
    t.after(() => client.destroy());
    client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    const [socket] = (await once(server, 'connection')) as [net.Socket];
    // What the kernel takes of it, it has taken when turn after turn of the event loop changes nothing.
    for (let turns = 0, left = 0; turns < 20; turns = left > 0 && left === socket.writableLength ? turns + 1 : 0) {
      left = socket.writableLength;
      await immediate();
    }
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

test('a client that reads nothing is cut off after 30 s; after 2 s where all together leave too much unread', (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  let now = 0;
  const server = new EventEmitter() as http.Server;
  const connections = new Connections(server, { begin() {}, now: () => now, maxConnections: MAX_CONNECTIONS });
  /** The moment at which a client that takes nothing from now on is cut off; undefined: it is not within a minute. */
  const cutOffAt = () => {
    const socket = Object.defineProperty(new net.Socket(), 'writableLength', { value: 1 });
    const reset = t.mock.method(socket, 'resetAndDestroy', () => socket.destroy());
    server.emit('connection', socket);
    for (const end = now + 60_000; reset.mock.callCount() === 0; t.mock.timers.tick(500)) {
      if (now >= end) return undefined;
      now += 500;
    }
    return now;
  };
  const [least, most] = [UNREAD_REPLY_MS, UNREAD_REPLY_MS + LOOK_EVERY_MS];
  const patient = cutOffAt() ?? Number.POSITIVE_INFINITY;
  assert.ok(patient > least && patient <= most + 500, `${patient} ms`);
  connections.unsent = 2 ** 30;
  const began = now;
  const full = (cutOffAt() ?? Number.POSITIVE_INFINITY) - began;
  assert.ok(full >= LOOK_EVERY_MS && full <= 2 * LOOK_EVERY_MS + 500, `${full} ms`);
});

test('of a client that is gone nothing is kept, nor of what is decided for it later', async (t) => {
  const answers: (() => void)[] = [];
  const about = { id: 'x', limits: '', date: 'now', ending: endingFor(5), extra: [] };
  const handle = (req: Incoming, res: Outgoing) =>
    void answers.push(() => void send(req, res, jsonReply(200, '[]'), about));
  const connections = createServer({ handle, refuse: () => {} });
  await once(connections.server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => connections.server.close());
  const socket = net.connect((connections.server.address() as AddressInfo).port, '127.0.0.1');
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(20));
  while (answers.length < 20) await wait(1);
  const [connection] = connections.open;
  socket.resetAndDestroy();
  await closed(connection.socket);
  for (const answer of answers) answer();
  assert.deepEqual([connections.unsent, connections.unanswered, connections.open.size], [0, 0, 0]);
});

test('floods of every kind: others are served, memory is bounded, and SIGTERM ends it', {
  skip: NO_PROC,
}, async (t) => {
  const server = await startFlooded(t);
  const flooded = FLOODED(server.key);
  await Promise.all([
    floods(t, server, { requests: Object.values(flooded), connections: 60, reads: true }),
    floods(t, server, { requests: [flooded.pages], connections: 900, reads: false }),
  ]);
  const [most] = await server.healthCpuMs(1_500);
  assert.ok(most < MAX_WAIT_CPU_MS, `/healthz after ${most} ms of the processor`); // the strict figures are in flood.quiet.test.ts
  const grownMB = server.grownMB();
  assert.ok(grownMB < 200, `+${grownMB} MB`);
  const stopping = await stoppingMs(server);
  assert.ok(stopping < MAX_STOP_MS, `stopped after ${stopping} ms`);
});
