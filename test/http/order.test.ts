/** Requests on one connection are served one at a time, in order (RFC 9112, 9.3.2), and only so many may wait. */
import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import net from 'node:net';
import { type TestContext, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { assertError, exchange, parseReplies, requestsOf, told } from '../raw.ts';
import { serviceFor } from '../service.ts';
import { until } from '../until.ts';

const HEALTHZ = 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n';

const order = (key: string, id: number) => {
  const body = `{"petId":${id}}`;
  return requestsOf(key).post(`Content-Length: ${body.length}\r\n`, body, 'POST /v1/store/orders HTTP/1.1');
};

test('a read behind a write sees it, and a write behind a write sees that', async (t) => {
  const { port, key } = await serviceFor(t, { onBatch: () => wait(20) });
  const { get, addPet } = requestsOf(key);
  for (let round = 1; round <= 5; round++) {
    const all = [addPet(), get('', `/v1/pets/${round}`), order(key, round), get('', `/v1/pets/${round}`)];
    const replies = await exchange(port, all.join(''), { replies: all.length });
    assert.deepEqual(told(replies), ['201 keep-alive', '200 keep-alive', '201 keep-alive', '200 keep-alive']);
    assert.equal(JSON.parse(replies[1].body).status, 'available');
    assert.equal(JSON.parse(replies[3].body).status, 'pending');
  }
});

test('one request of a connection is under way, and other connections wait for none', async (t) => {
  const service = await serviceFor(t);
  const { port, key, limiter } = service;
  const { get } = requestsOf(key);
  const begun: (() => void)[] = [];
  const take = limiter.take.bind(limiter);
  limiter.take = async (caller) => {
    await new Promise<void>((go) => begun.push(go));
    return take(caller);
  };
  const replies = exchange(port, get() + get('', '/v1/nothing') + get(), { replies: 3 });
  for (let n = 1; n <= 3; n++) {
    await until(() => begun.length >= n);
    await wait(20);
    assert.equal(begun.length, n);
    if (n === 1) {
      const other = exchange(port, get(), { replies: 1 });
      await until(() => begun.length === 2);
      begun.splice(1)[0]();
      assert.deepEqual(told(await other), ['200 keep-alive']);
    }
    begun[n - 1]();
  }
  assert.deepEqual(told(await replies), ['200 keep-alive', '404 keep-alive', '200 keep-alive']);
});

test('24 requests wait behind the one under way; each beyond is refused, undone, and then the connection ends', async (t) => {
  const { port, key, store } = await serviceFor(t, { onBatch: () => wait(20) });
  const { get, addPet } = requestsOf(key);
  assert.equal((await exchange(port, addPet().repeat(25), { replies: 25 })).length, 25);
  assert.equal(store.read.pets.size, 25);
  for (const [beyond, more, added] of [
    [addPet(), 1, 50],
    [addPet(), 99, 75],
    [get(), 200, 100],
  ] as const) {
    const replies = await exchange(port, addPet().repeat(25) + beyond.repeat(more));
    const refusals = [...Array(more - 1).fill('503 keep-alive'), '503 close'];
    assert.deepEqual(told(replies), [...Array(25).fill('201 keep-alive'), ...refusals]);
    assertError(replies[25], 503, 'unavailable');
    assert.equal(replies[25].headers.get('retry-after'), '1');
    assert.equal(store.read.pets.size, added);
  }
});

test('a packet full of requests has a reply to each, and who reads late finds the last', async (t) => {
  const { port } = await serviceFor(t);
  const all = Math.floor(65_536 / HEALTHZ.length);
  const socket = net.connect(port, '127.0.0.1').pause();
  socket.write(HEALTHZ.repeat(all));
  await wait(300);
  const replies = told(parseReplies(Buffer.concat(await socket.toArray())));
  assert.equal(replies.length, all);
  assert.deepEqual(replies.slice(0, 25), Array(25).fill('200 keep-alive'));
  assert.deepEqual(replies.slice(-2), ['503 keep-alive', '503 close']);
});

test('each request runs in the context that was there when it came, also if it waits', async (t) => {
  const { service, port, key, limiter } = await serviceFor(t, { onBatch: () => wait(20) });
  const { get, addPet } = requestsOf(key);
  const context = new AsyncLocalStorage<string>();
  const emit = service.server.emit.bind(service.server);
  service.server.emit = (event: string, ...words: unknown[]) => {
    const run = () => emit(event, ...words); // as OpenTelemetry's instrumentation does
    return event === 'request' ? context.run((words[0] as IncomingMessage).url ?? '', run) : run();
  };
  const seen: unknown[] = [];
  const take = limiter.take.bind(limiter);
  limiter.take = (caller) => {
    seen.push(context.getStore());
    return take(caller);
  };
  const targets = ['/v1/pets', '/v1/pets?limit=1', '/v1/pets?limit=2', '/v1/pets?limit=3'];
  const rest = targets.slice(1).map((target) => get('', target));
  await exchange(port, addPet() + rest.join(''), { replies: 4 });
  assert.deepEqual(seen, targets);
});

test('a client that has ended its side is told of the fault behind requests that take a while', async (t) => {
  const { port, key } = await serviceFor(t, { onBatch: () => wait(20) });
  const { get, addPet } = requestsOf(key);
  const replies = await exchange(port, `${addPet()}${get()}garbage\r\n\r\n`, { end: true });
  assert.deepEqual(told(replies), ['201 keep-alive', '200 keep-alive', '400 close']);
});

test('sixteen of the largest pages at once lose nothing', async (t) => {
  const { port, key, store } = await serviceFor(t);
  await store.write((tx) => {
    for (let n = 0; n < 100; n++) tx.pets.add({ name: '🐈'.repeat(255), categoryId: 1, status: 'sold' });
  });
  const page = requestsOf(key).get('', '/v1/pets?limit=100');
  const replies = await exchange(port, page.repeat(16), { replies: 16 });
  for (const { status, body } of replies) assert.equal(`${status} ${JSON.parse(body).length}`, '200 100');
});

/** Asks, behind a write, for a page that no kernel takes at once. `stuck` lets both be served, `read` reads all replies. */
async function slowReader(t: TestContext, extra = '') {
  let held = Promise.resolve();
  const { service, port, key } = await serviceFor(t, { onBatch: () => held, page: 'x'.repeat(32 * 1024 * 1024) });
  let serve = () => {};
  held = new Promise((resolve) => {
    serve = resolve;
  });
  const client = net.connect(port, '127.0.0.1').pause();
  t.after(() => client.destroy());
  const [socket] = (await once(service.server, 'connection')) as [net.Socket];
  const { addPet, get } = requestsOf(key);
  client.write(addPet() + get(extra, '/'));
  const stuck = async () => {
    serve();
    await until(() => socket.writableLength > 0 || socket.destroyed);
  };
  const read = async () => told(parseReplies(Buffer.concat(await client.toArray())));
  return { client, socket, stuck, read };
}

test('a client that has ended its side, and reads slowly, gets all of the last reply', async (t) => {
  const { client, socket, stuck, read } = await slowReader(t);
  client.end();
  await once(socket, 'end');
  await stuck();
  await wait(50);
  assert.deepEqual(await read(), ['201 keep-alive', '200 keep-alive']);
});

test('a client that ends its side before it has read a reply is told of the fault behind it', async (t) => {
  const { client, socket, stuck, read } = await slowReader(t);
  await stuck();
  client.end('garbage\r\n\r\n');
  await once(socket, 'end');
  assert.deepEqual(await read(), ['201 keep-alive', '200 keep-alive', '400 close']);
});

test('a client that takes longer than a second to read the last reply gets all of it', async (t) => {
  const { stuck, read } = await slowReader(t, 'Connection: close\r\n');
  await stuck();
  await wait(1_500);
  assert.deepEqual(await read(), ['201 keep-alive', '200 close']);
});

test('no part of a request that may not wait is read, and its connection ends', async (t) => {
  const { port, key } = await serviceFor(t);
  const { get, post } = requestsOf(key);
  const chunked = (chunks: string) => get().repeat(25) + post('Transfer-Encoding: chunked\r\n', chunks);
  const piece = `1\r\n \r\n7000\r\n${' '.repeat(0x7000)}`;
  const checks = [piece, piece, piece, 'no chunk\r\n'].map(async (chunks) => {
    const replies = await exchange(port, chunked(chunks));
    assert.deepEqual(told(replies), [...Array(25).fill('200 keep-alive'), '503 close']);
  });
  await Promise.all(checks);
  const padded = `{"name":"Rex","categoryId":3}${' '.repeat(65_000)}`;
  const replies = await exchange(port, requestsOf(key).addPet('', padded), { replies: 1 });
  assert.deepEqual(told(replies), ['201 keep-alive']);
});
