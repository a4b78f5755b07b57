/** Bodies in pieces: what they take of memory and of time is bounded in bytes, in pieces, and over all connections. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net, { type AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { setImmediate as immediate, setTimeout as wait } from 'node:timers/promises';
import { type Connection, connectionOf, type Outgoing } from '../../src/http/connection.ts';
import type { ApiError } from '../../src/http/errors.ts';
import type { Incoming } from '../../src/http/messages.ts';
import { endingFor, errorReply, NO_CONTENT, send } from '../../src/http/reply.ts';
import { createServer } from '../../src/http/server.ts';
import { UnwantedReads } from '../../src/http/turns.ts';
import { memoryInUse } from '../memory.ts';
import { assertError, closed, exchange, exchangeOne, PET, requestsOf, told } from '../raw.ts';
import { serviceFor } from '../service.ts';
import { endless, floods, NO_PROC, ONE_BYTE, startFlooded, stoppingMs } from './flood.ts';

const MAX_BODY_BYTES = 65_536;
const MAX_BODY_PIECES = 4_096;
const MAX_UNWANTED_BYTES = 4 * 1024 * 1024;
const MAX_UNWANTED_PIECES = 4_096;
const MAX_BODY_BYTES_IN_ALL = 64 * 1024 * 1024;
/** So many that what a connection takes is told from what else there is. */
const WAITING_WRITES = 400;
/** So many that what one of them takes is told from the tick of 10 ms in which the kernel counts. */
const SENDERS = 100;
const LEAST_CPU_MS = 0.2;
const END = '0\r\n\r\n';
const inChunks = (text: string) => Array.from(text, (one) => `1\r\n${one}\r\n`).join('');
const padded = (length: number) => PET.padStart(length);

test('a body of 65,536 bytes is taken, in few pieces or in 4,096, and one more of either is not', async (t) => {
  const { port, key } = await serviceFor(t);
  const { addPet, post } = requestsOf(key);
  const chunked = (chunks: string) => post('Transfer-Encoding: chunked\r\n', chunks + END);
  const parts = padded(MAX_BODY_BYTES).match(/.{32}/g) as string[];
  for (const [bytes, status] of [
    [addPet('', padded(MAX_BODY_BYTES)), 201],
    [addPet('', padded(MAX_BODY_BYTES + 1)), 413],
    [chunked(`10000\r\n${padded(MAX_BODY_BYTES)}\r\n`), 201],
    [chunked(`10001\r\n${padded(MAX_BODY_BYTES + 1)}\r\n`), 413],
    [chunked(parts.map((part) => `20\r\n${part}\r\n`).join('')), 201],
    [chunked(inChunks(PET)), 201],
    [chunked(inChunks(padded(MAX_BODY_PIECES))), 201],
    [chunked(inChunks(padded(MAX_BODY_PIECES + 1))), 413],
  ] as const) {
    const [reply] = await exchange(port, bytes, { replies: 1 });
    const isTaken = status === 201;
    if (isTaken)
      assert.equal(reply.body.replace(/"id":\d+/, ''), '{,"name":"Rex","categoryId":3,"status":"available"}');
    else assertError(reply, 413, 'body_too_large');
    assert.deepEqual(told([reply]), [isTaken ? '201 keep-alive' : '413 close']);
  }
});

test('who sends a body without end is told so, on a connection that then ends; parsers serve others after', async (t) => {
  const { port, key } = await serviceFor(t);
  const { addPet } = requestsOf(key);
  for (const head of [endless(key), endless()]) {
    for (let round = 0; round < 10; round++) {
      const [reply] = await exchange(port, head + ONE_BYTE.repeat(60_000));
      assert.equal(reply.headers.get('connection'), 'close');
      if (head === endless(key)) assert.match(assertError(reply, 413, 'body_too_large'), /at most 4096 pieces/);
      else assertError(reply, round < 60 ? 401 : 429, 'missing_api_key');
      // Behind another body, so that it is parsed as a second message.
      const replies = await exchange(port, addPet() + addPet(), { replies: 2 });
      assert.deepEqual(told(replies), ['201 keep-alive', '201 keep-alive']);
    }
  }
});

test('a refused body behind a write is the last of its connection, also where it ends in the same packet', async (t) => {
  const { port, key, store } = await serviceFor(t);
  const { addPet } = requestsOf(key);
  const bad = endless(key) + ONE_BYTE.repeat(MAX_BODY_PIECES + 1) + END;
  assert.deepEqual(told(await exchange(port, addPet() + bad + addPet())), ['201 keep-alive', '413 close']);
  assert.equal(store.read.counts().pets, 1);
});

test('the parser stops at the head of a body that is refused there, in the middle of its packet', async (t) => {
  const { app, port, key } = await serviceFor(t);
  for (const [head, status, isStopped] of [
    [endless(), 401, true],
    [endless('ps_live_nobodyhasthiskey'), 401, true],
    ['CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n', 405, true],
    [endless(key), 413, false], // which is known only when too many pieces have come
  ] as const) {
    const client = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    t.after(() => client.destroy());
    const [socket] = (await once(app.server, 'connection')) as [net.Socket & { parser: object | null }];
    assert.notEqual(socket.parser, null, 'this is where node:http keeps the parser of a connection');
    client.write(head + ONE_BYTE.repeat(MAX_BODY_PIECES + 1));
    const [reply] = await once(client, 'data');
    assert.match(String(reply), new RegExp(`^HTTP/1.1 ${status} `));
    assert.equal(socket.parser === null, isStopped, head);
  }
});

test('behind a reply that did not need it no more than 4 MiB are read', async (t) => {
  const { app, port } = await serviceFor(t);
  for (const chunk of [ONE_BYTE, `8000\r\n${' '.repeat(32_768)}\r\n`]) {
    const client = net.connect(port, '127.0.0.1').resume();
    const [socket] = (await once(app.server, 'connection')) as [net.Socket];
    client.write(endless() + chunk.repeat(Math.ceil((3 * MAX_UNWANTED_BYTES) / chunk.length)));
    await Promise.all([closed(client), closed(socket)]);
    assert.ok(socket.bytesRead < MAX_UNWANTED_BYTES + 2 * 65_536, `${socket.bytesRead} bytes`);
  }
});

test('behind the last reply of a connection 4,096 packets are read: the next one ends it', async (t) => {
  const { app, port } = await serviceFor(t);
  const client = net.connect(port, '127.0.0.1');
  t.after(() => client.destroy());
  const [socket] = (await once(app.server, 'connection')) as [net.Socket];
  connectionOf(socket).throwAwayRest();
  const packet = Buffer.of(0); // emitted here, because the kernel would join what a client sends
  for (let n = 0; n < MAX_UNWANTED_PIECES; n++) socket.emit('data', packet);
  assert.equal(socket.destroyed, false);
  socket.emit('data', packet);
  assert.equal(socket.destroyed, true);
});

test('of connections whose bytes nobody wants four are read in a turn of the event loop, 256 wait for theirs', async (t) => {
  const { app, port } = await serviceFor(t);
  const sockets: net.Socket[] = [];
  app.server.on('connection', (socket: net.Socket) => sockets.push(socket));
  const client = () =>
    net
      .connect(port, '127.0.0.1')
      .resume()
      .on('error', () => {});
  const clients = Array.from({ length: 40 }, client);
  t.after(() => clients.forEach((one) => void one.destroy()));
  for (const one of clients) one.write(endless() + ONE_BYTE.repeat(MAX_UNWANTED_BYTES / ONE_BYTE.length));
  while (sockets.length < clients.length || sockets.some(({ bytesRead }) => bytesRead < 65_536)) await immediate();
  const readInTurn: number[] = [];
  for (let before = sockets.map(({ bytesRead }) => bytesRead); readInTurn.length < 200; ) {
    await immediate();
    readInTurn.push(sockets.filter(({ bytesRead }, at) => bytesRead > before[at]).length);
    before = sockets.map(({ bytesRead }) => bytesRead);
  }
  // A socket that had nothing to read in its turn is read when something comes, so now and then it is one more.
  const told = readInTurn.join(' ');
  assert.ok(Math.max(...readInTurn) < 10, told);
  assert.ok(readInTurn.reduce((sum, n) => sum + n) < 4.5 * readInTurn.length, told);

  const reads = new UnwantedReads();
  const toldToPause = Array.from({ length: 257 }, () => reads.enqueue(new net.Socket()));
  assert.deepEqual([toldToPause.indexOf(false), toldToPause.at(-1)], [256, false]);
});

/** Answers when told to. */
async function held(t: TestContext) {
  const bodies: { req: Incoming; answer(): void; outcome: Promise<number> }[] = [];
  const about = { id: 'x', limits: '', date: 'now', ending: endingFor(5), extra: [] };
  const handle = (req: Incoming, res: Outgoing) => {
    const outcome = req.body().then(
      (body) => body.length,
      (error: ApiError) => {
        req.replyDecided(res);
        send(req, res, errorReply(error), about);
        return -1;
      },
    );
    const answer = () => {
      req.replyDecided(res);
      send(req, res, NO_CONTENT, about);
    };
    bodies.push({ req, answer, outcome });
  };
  const connections = createServer({ handle, refuse: () => {} });
  await once(connections.server.listen(0, '127.0.0.1'), 'listening');
  const clients: net.Socket[] = [];
  t.after(() => {
    for (const client of clients) client.destroy();
    connections.server.close();
  });
  const { port } = connections.server.address() as AddressInfo;
  const ask = (bytes: string) => {
    const client = net.connect(port, '127.0.0.1');
    clients.push(client.on('error', () => {}));
    client.write(bytes);
    return client;
  };
  return { connections, bodies, ask, port };
}

test('a body takes the memory of its bytes, however small the pieces, and nothing once it is taken or given up', async (t) => {
  const { connections, bodies, ask } = await held(t);
  const part = endless() + ONE_BYTE.repeat(3_000);
  const client = ask(part);
  while (connections.bodyBytes < 3_000) await wait(1);
  assert.ok(connections.bodyBytes <= 2 * 3_000 + 1_024, `${connections.bodyBytes}`);
  client.write(END);
  assert.equal(await bodies[0].outcome, 3_000);
  assert.equal(connections.bodyBytes, 0, 'taken');
  ask(part);
  while (connections.bodyBytes === 0) await wait(1);
  bodies[1].answer(); // without asking for it, as far as the server knows
  assert.equal(connections.bodyBytes, 0, 'unwanted');
  const gone = ask(part);
  while (connections.bodyBytes === 0) await wait(1);
  gone.resetAndDestroy();
  while (connections.open.size > 2) await wait(1);
  assert.equal(connections.bodyBytes, 0, 'gone');
});

test('all bodies under way take 64 MiB at most: then the one that has come for longest is given up, with 503', async (t) => {
  const { connections, bodies, ask } = await held(t);
  const length = MAX_BODY_BYTES - 1;
  const bytes = `POST / HTTP/1.1\r\nHost:\r\nContent-Length:${MAX_BODY_BYTES}\r\n\r\n${' '.repeat(length)}`;
  const fitting = Math.floor(MAX_BODY_BYTES_IN_ALL / MAX_BODY_BYTES);
  const first = ask(bytes);
  const text: Buffer[] = [];
  first.on('data', (part) => text.push(part));
  while (connections.bodyBytes < length) await wait(1);
  const others: net.Socket[] = [];
  while (others.length < fitting + 5) {
    others.push(ask(bytes).pause());
    // A hundred at a time: of more than the kernel's queue holds, some are left waiting for minutes.
    if (others.length % 100 === 0) while (bodies.length < others.length + 1) await wait(1);
  }
  const ended = await bodies[0].outcome;
  assert.equal(ended, -1);
  await closed(first);
  const reply = Buffer.concat(text).toString();
  assert.match(reply, /^HTTP\/1.1 503 [\s\S]*Retry-After: 1[\s\S]*"code":"unavailable"/);
  assert.match(reply, /Connection: close/);
  const last = others.at(-1) as net.Socket;
  while (bodies.length < others.length + 1) await wait(5);
  const isRead = ({ socket }: Connection) => socket.bytesRead >= bytes.length;
  while (![...connections.open].every(isRead)) await wait(5);
  assert.ok(connections.bodyBytes <= MAX_BODY_BYTES_IN_ALL && connections.bodyBytes > 0.9 * MAX_BODY_BYTES_IN_ALL);
  last.resume().write(' ');
  const outcomes = bodies.map(({ outcome }) => outcome);
  assert.equal(
    await Promise.race(outcomes.slice(1).map((one) => one.then((n) => (n > 0 ? n : new Promise<number>(() => {}))))),
    MAX_BODY_BYTES,
  );
});

test('a write that waits for the disk holds no body: thousands may wait', async (t) => {
  const { app, port, key, store } = await serviceFor(t);
  const { post } = requestsOf(key);
  const write = store.write.bind(store);
  const asked = {
    'POST /v1/pets': PET,
    'POST /v1/store/orders': '{"petId":1}',
    'PATCH /v1/store/orders/1': '{"status":"delivered"}',
    'PUT /v1/categories/1': '{"name":"cats"}',
  };
  for (const [line, body] of Object.entries(asked)) {
    let [waiting, go] = [0, () => {}];
    const disk = new Promise<void>((resolve) => (go = resolve));
    store.write = (decide) => {
      waiting++;
      return disk.then(() => write(decide));
    };
    const extra = `Content-Length: ${MAX_BODY_BYTES}\r\nConnection: close\r\n`;
    const bytes = Buffer.from(post(extra, body.padStart(MAX_BODY_BYTES), `${line} HTTP/1.1`));
    await wait(50);
    const before = memoryInUse();
    const sockets = Array.from({ length: WAITING_WRITES }, () => net.connect(port, '127.0.0.1').resume());
    for (const socket of sockets) socket.write(bytes);
    while (waiting < WAITING_WRITES) await wait(5);
    const inUse = () => (memoryInUse() - before) / WAITING_WRITES;
    let each = inUse();
    // V8 frees the memory of buffers beside the program: a body that is held stays, whatever the wait.
    for (let tries = 0; each >= 0.75 * MAX_BODY_BYTES && tries < 100; tries++) {
      await wait(50);
      each = inUse();
    }
    assert.ok(
      each < 0.75 * MAX_BODY_BYTES,
      `${line}: ${Math.round(each)} bytes for each write, its connection included`,
    );
    assert.equal(app.connections.bodyBytes, 0);
    go();
    await Promise.all(sockets.map(closed));
  }
});

test('endless bodies, with a key and without: memory and time are bounded, others are served, SIGTERM ends it', {
  skip: NO_PROC,
}, async (t) => {
  const server = await startFlooded(t, 'free', { env: { NODE_OPTIONS: '--max-old-space-size=512' } });
  const all = [endless(server.key), endless()].map((head) =>
    floods(t, server, { head, requests: [ONE_BYTE], connections: 60, reads: true }),
  );
  await Promise.all(all);
  const [most] = await server.healthCpuMs(3_000);
  assert.ok(most < 5_000, `/healthz after ${most} ms of the processor`); // the strict figures are in bodies.quiet.test.ts
  assert.ok(server.grownMB() < 200, `+${server.grownMB()} MB`);
  const stopping = await stoppingMs(server);
  assert.ok(stopping < 60_000, `stopped after ${stopping} ms`);
});

test('what a sender of endless bodies without a key costs is what its bytes cost, not its pieces', {
  skip: NO_PROC,
}, async (t) => {
  const server = await startFlooded(t);
  const port = Number(new URL(server.url).port);
  const pieces = ONE_BYTE.repeat(MAX_BODY_BYTES - 1);
  const whole = `${pieces.length.toString(16)}\r\n${' '.repeat(pieces.length)}\r\n`;
  const cpuMsOf = async (body: string) => {
    const before = server.cpuMs();
    for (let i = 0; i < SENDERS; i++) await exchangeOne(port, endless() + body);
    return (server.cpuMs() - before) / SENDERS;
  };
  await cpuMsOf(whole); // the program is compiled by then
  const [ofWhole, ofPieces] = [await cpuMsOf(whole), await cpuMsOf(pieces)];
  const told = `${ofPieces} ms of the processor for each, ${ofWhole} ms for as many bytes in one piece`;
  t.diagnostic(told);
  assert.ok(ofPieces < 6 * Math.max(ofWhole, LEAST_CPU_MS), told); // read by the parser to the end it takes 20 times that
});
