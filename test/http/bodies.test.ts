/** Bodies in pieces: their memory is bounded in bytes, in pieces, and over all connections. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { memoryInUse } from '../memory.ts';
import { assertError, closed, endless, exchange, ONE_BYTE, PET, requestsOf, told } from '../raw.ts';
import { serviceFor } from '../service.ts';
import { until } from '../until.ts';

const MAX_BODY_BYTES = 65_536;
const MAX_BODY_PIECES = 4_096;
const MAX_BODY_BYTES_IN_ALL = 64 * 1024 * 1024;
const MAX_LINGER_BYTES = 4 * 1024 * 1024;
const END = '0\r\n\r\n';
const inChunks = (body: string) => Array.from(body, (one) => `1\r\n${one}\r\n`).join('');
const padded = (length: number) => PET.padStart(length);

test('a connection that waits for its next request does not hold the body of the last one', async (t) => {
  const CONNECTIONS = 100;
  const { port, key } = await serviceFor(t);
  const sockets = Array.from({ length: CONNECTIONS }, () => net.connect(port, '127.0.0.1'));
  t.after(() => sockets.map((socket) => socket.destroy()));
  const sendAll = async (bytes: string) => {
    for (const socket of sockets) {
      socket.write(bytes);
      await once(socket, 'data');
    }
  };
  const { addPet } = requestsOf(key);
  await sendAll(addPet());
  const before = memoryInUse();
  await sendAll(addPet('', padded(MAX_BODY_BYTES)));
  const held = () => memoryInUse() - before;
  const half = (CONNECTIONS * MAX_BODY_BYTES) / 2;
  await until(() => held() < half); // V8 frees buffers in a thread of its own
});

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
    if (status === 413) assertError(reply, 413, 'body_too_large');
    else assert.equal(reply.body.replace(/"id":\d+/, ''), '{,"name":"Rex","categoryId":3,"status":"available"}');
    assert.deepEqual(told([reply]), [status === 201 ? '201 keep-alive' : '413 close']);
  }
});

test('a body without end is refused, also behind a write, and the connection then ends', async (t) => {
  const { port, key, store } = await serviceFor(t);
  const { addPet } = requestsOf(key);
  const [refused] = await exchange(port, endless() + ONE_BYTE.repeat(60_000));
  assertError(refused, 401, 'missing_api_key');
  const bad = endless(key) + ONE_BYTE.repeat(MAX_BODY_PIECES + 1) + END;
  const replies = await exchange(port, addPet() + bad + addPet());
  assert.deepEqual(told(replies), ['201 keep-alive', '413 close']);
  assert.match(assertError(replies[1], 413, 'body_too_large'), /at most 4096 pieces/);
  assert.equal(store.read.pets.size, 1);
});

test('a small body that nobody needs is read to its end, and the connection goes on', async (t) => {
  const { port, key } = await serviceFor(t);
  const { get, addPet } = requestsOf(key);
  const unknown = addPet().replace('/v1/pets', '/v1/nothing');
  const replies = await exchange(port, unknown.slice(0, -5), { later: unknown.slice(-5) + get(), replies: 2 });
  assert.deepEqual(told(replies), ['404 keep-alive', '200 keep-alive']);
});

test('behind a reply that did not need it no more than 4 MiB are read', async (t) => {
  const { service, port } = await serviceFor(t);
  for (const chunk of [ONE_BYTE, `8000\r\n${' '.repeat(32_768)}\r\n`]) {
    const client = net.connect(port, '127.0.0.1').resume();
    const [socket] = (await once(service.server, 'connection')) as [net.Socket];
    client.write(endless() + chunk.repeat(Math.ceil((3 * MAX_LINGER_BYTES) / chunk.length)));
    await Promise.all([closed(client), closed(socket)]);
    assert.ok(socket.bytesRead < MAX_LINGER_BYTES + 4 * MAX_BODY_BYTES, `${socket.bytesRead} bytes`);
  }
});

test('all bodies under way take 64 MiB at most: the newest are refused with 503, and what ends makes room', async (t) => {
  const { service, port, key } = await serviceFor(t, { connectionsPerAddress: 10_000 });
  service.server.requestTimeout = 600_000; // for a machine that takes longer than 15 s to bring them all
  const { post } = requestsOf(key);
  const half = post(`Content-Length: ${MAX_BODY_BYTES}\r\n`, ' '.repeat(MAX_BODY_BYTES - 1));
  const clients: net.Socket[] = [];
  t.after(() => clients.forEach((client) => void client.destroy()));
  const before = memoryInUse();
  let refused = 0;
  for (let n = 0; n < MAX_BODY_BYTES_IN_ALL / MAX_BODY_BYTES + 20; n++) {
    const client = net.connect(port, '127.0.0.1').on('error', () => {});
    clients.push(client);
    client.once('data', (reply) => {
      if (client === clients[0]) return;
      refused++;
      assert.match(
        String(reply),
        /^HTTP\/1.1 503 [\s\S]*Retry-After: 1\r\n[\s\S]*Connection: close[\s\S]*"unavailable"/,
      );
      client.destroy(); // as long as it stays, it counts among those of its address that send what nobody wants
    });
    client.write(half);
    if (n % 50 === 0) await once(client, 'connect'); // the kernel has room for so many that are not accepted yet
  }
  await until(() => refused === 20);
  assert.ok(memoryInUse() - before < 2 * MAX_BODY_BYTES_IN_ALL);
  const [oldest] = clients;
  const reply = text(oldest);
  oldest.end(' ');
  assert.match(await reply, /^HTTP\/1.1 400 [\s\S]*"invalid_json"/, 'the oldest is read to its end');
  for (const client of clients) client.destroy();
  // The server sees a moment later that they are gone. A refusal before that ends a connection that still sends.
  await until(async () => {
    const sent = exchange(port, requestsOf(key).addPet('', padded(MAX_BODY_BYTES)), { replies: 1 });
    const [reply] = await sent.catch(() => []);
    return reply?.status === 201;
  });
});

test('the bodies of requests that wait are freed when their client is gone', async (t) => {
  const { service, port, key, limiter } = await serviceFor(t);
  const { addPet } = requestsOf(key);
  const take = limiter.take.bind(limiter);
  let [held, release] = [Promise.resolve() as Promise<unknown>, () => {}];
  limiter.take = (async (caller) => held.then(() => take(caller))) as typeof take;
  const flood = addPet('', padded(MAX_BODY_BYTES)).repeat(25);
  for (let bytes = 0; bytes < 1.2 * MAX_BODY_BYTES_IN_ALL; bytes += flood.length) {
    held = new Promise<void>((resolve) => (release = resolve));
    const client = net.connect(port, '127.0.0.1');
    const [socket] = (await once(service.server, 'connection')) as [net.Socket];
    client.write(flood);
    await until(() => socket.bytesRead >= flood.length);
    client.resetAndDestroy();
    await closed(socket);
    release();
  }
  held = wait(100); // all 25 are under way at once
  const replies = await exchange(port, addPet('', padded(MAX_BODY_BYTES)).repeat(25), { replies: 25 });
  assert.deepEqual(told(replies), Array(25).fill('201 keep-alive'));
});

/** Sends what it reads and then one-byte chunks without end, takes few bytes into its kernel, and reads none. */
const SENDER = `
  use Socket; $SIG{PIPE} = 'IGNORE'; undef $/;
  socket(my $socket, PF_INET, SOCK_STREAM, 0); setsockopt($socket, SOL_SOCKET, SO_RCVBUF, 2048);
  connect($socket, sockaddr_in($ARGV[0], INADDR_LOOPBACK)) or die;
  syswrite($socket, <STDIN>); my $chunks = "1\\r\\n \\r\\n" x 10000;
  1 while syswrite($socket, $chunks); sleep 60;`;

test('a refused body behind replies that nobody reads is not read on', {
  skip: spawnSync('perl', ['-v']).error && 'there is no perl, which can take so little into its kernel',
}, async (t) => {
  const { key, port, service, store } = await serviceFor(t);
  const name = '\u{1f600}'.repeat(255);
  await store.write((tx) => {
    for (let n = 0; n < 100; n++) tx.pets.add({ name, categoryId: 1, status: 'sold' });
  });
  const accepted = once(service.server, 'connection');
  const sender = spawn('perl', ['-e', SENDER, String(port)]);
  t.after(() => sender.kill('SIGKILL'));
  sender.stdin.end(requestsOf(key).get('', '/v1/pets?limit=100').repeat(23) + endless());
  const [socket] = (await accepted) as [net.Socket];
  let before = -1;
  for (
    const end = performance.now() + 10_000;
    socket.bytesRead !== before && performance.now() < end;
    await wait(500)
  ) {
    before = socket.bytesRead;
  }
  assert.equal(socket.bytesRead, before, 'it has stopped');
  assert.ok(before < 1_000_000, `${before} bytes were read`);
});

test('a refusal arrives though the rest of its packet cannot be read', async (t) => {
  const { port } = await serviceFor(t);
  const [reply] = await exchange(port, `${endless()}2\r\nab\r\nzz\r\n`, { later: 'x'.repeat(100) });
  assert.equal(reply.status, 401);
});
