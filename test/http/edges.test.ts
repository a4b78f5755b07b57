/** Everything that HTTP can do to a server, over raw sockets: each trap ends in a reply out of the catalogue. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import { after, before, type TestContext, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import type { Answered } from '../../src/app.ts';
import { realDisk } from '../../src/store/disk.ts';
import { assertCommon, assertError, exchange, exchangeOne } from '../raw.ts';
import { startService, type TestService } from '../service.ts';

let service: TestService;
let key: string;
before(async () => {
  service = await startService();
  key = (await service.makeKey()).text;
});
after(() => service.close());

const get = (extra = '', target = '/v1/pets', version = '1.1') =>
  `GET ${target} HTTP/${version}\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n${extra}\r\n`;
const post = (extra: string, body: string) =>
  `POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\n${extra}\r\n${body}`;
const UPGRADE = 'Connection: Upgrade\r\nUpgrade: websocket\r\n';
const bare = (method: string) => get().replace('GET', method);
const PET = '{"name":"Rex","categoryId":3}';
const addPet = (extra = '', pet = PET) => post(`${extra}Content-Length: ${pet.length}\r\n`, pet);

interface Trap {
  name: string;
  send: () => string | Buffer;
  status: number;
  code?: string;
  /** Whether the connection must end with the reply. By default it must. */
  stays?: boolean;
}

const long = (n: number) => 'x'.repeat(n);
const TRAPS: Trap[] = [
  { name: 'no Host', send: () => 'GET /v1/pets HTTP/1.1\r\n\r\n', status: 400, code: 'bad_request' },
  { name: 'two Hosts', send: () => get('Host: y\r\n'), status: 400, code: 'bad_request' },
  {
    name: 'a Host that is none',
    send: () => 'GET /v1/pets HTTP/1.1\r\nHost: a b/c\r\n\r\n',
    status: 400,
    code: 'bad_request',
  },
  { name: 'two Authorizations', send: () => get(`Authorization: Bearer ${key}\r\n`), status: 400, code: 'bad_request' },
  {
    name: 'two Content-Types',
    send: () => post(`Content-Type: text/plain\r\nContent-Length: ${PET.length}\r\n`, PET),
    status: 400,
    code: 'bad_request',
  },
  { name: 'HTTP/0.9', send: () => 'GET /v1/pets\r\n\r\n', status: 400, code: 'bad_request' },
  { name: 'HTTP/2.0', send: () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', status: 400, code: 'bad_request' },
  { name: 'a version that does not exist', send: () => get('', '/v1/pets', '1.9'), status: 400, code: 'bad_request' },
  {
    name: 'an unknown method',
    send: () => 'BREW /v1/pets HTTP/1.1\r\nHost: x\r\n\r\n',
    status: 400,
    code: 'bad_request',
  },
  { name: 'no HTTP at all', send: () => 'hello\r\n\r\n', status: 400, code: 'bad_request' },
  { name: 'a TLS hello', send: () => Buffer.from('160301020001000001fc0303', 'hex'), status: 400, code: 'bad_request' },
  { name: 'a bare line feed', send: () => 'GET /v1/pets HTTP/1.1\nHost: x\n\n', status: 400, code: 'bad_request' },
  { name: 'a folded header', send: () => get('A: b\r\n  c\r\n'), status: 400, code: 'bad_request' },
  { name: 'a header without a name', send: () => get(': x\r\n'), status: 400, code: 'bad_request' },
  { name: 'a space before the colon', send: () => get('A : x\r\n'), status: 400, code: 'bad_request' },
  { name: 'a NUL in a header', send: () => get('A: \0\r\n'), status: 400, code: 'bad_request' },
  { name: 'a target that is no path', send: () => get('', 'pets'), status: 400, code: 'bad_request' },
  {
    name: 'an absolute target of another host',
    send: () => get('', 'http://y/v1/pets'),
    status: 400,
    code: 'bad_request',
  },
  {
    name: 'two Content-Lengths',
    send: () => post('Content-Length: 5\r\nContent-Length: 6\r\n', PET),
    status: 400,
    code: 'bad_request',
  },
  {
    name: 'Content-Length and Transfer-Encoding',
    send: () => post('Content-Length: 5\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\n'),
    status: 400,
    code: 'bad_request',
  },
  {
    name: 'a Content-Length that is no number',
    send: () => post('Content-Length: five\r\n', PET),
    status: 400,
    code: 'bad_request',
  },
  {
    name: 'Transfer-Encoding: gzip, chunked',
    send: () => post('Transfer-Encoding: gzip, chunked\r\n', '0\r\n\r\n'),
    status: 400,
    code: 'bad_request',
  },
  {
    name: 'Transfer-Encoding: identity',
    send: () => post('Transfer-Encoding: identity\r\n', ''),
    status: 400,
    code: 'bad_request',
  },
  {
    name: 'Transfer-Encoding twice',
    send: () => post('Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\n'),
    status: 400,
    code: 'bad_request',
  },
  {
    name: 'Transfer-Encoding on HTTP/1.0',
    send: () => post('Transfer-Encoding: chunked\r\n', '0\r\n\r\n').replace('HTTP/1.1', 'HTTP/1.0'),
    status: 400,
    code: 'bad_request',
  },
  { name: 'a body on GET', send: () => `${get('Content-Length: 2\r\n')}{}`, status: 400, code: 'bad_request' },
  {
    name: 'a chunked body on GET',
    send: () => `${get('Transfer-Encoding: chunked\r\n')}0\r\n\r\n`,
    status: 400,
    code: 'bad_request',
  },
  {
    name: 'a bad chunk size',
    send: () => post('Transfer-Encoding: chunked\r\n', 'zz\r\n{}\r\n0\r\n\r\n'),
    status: 400,
    code: 'bad_request',
  },
  {
    name: 'chunk extensions without end',
    send: () => post('Transfer-Encoding: chunked\r\n', `2;${long(20_000)}\r\n{}\r\n`),
    status: 413,
    code: 'body_too_large',
  },
  { name: 'headers over 8 KiB', send: () => get(`A: ${long(9_000)}\r\n`), status: 431, code: 'headers_too_large' },
  { name: 'more than 100 headers', send: () => get('A: b\r\n'.repeat(101)), status: 431, code: 'headers_too_large' },
  {
    name: 'a target over 2,048 characters',
    send: () => get('', `/v1/pets?${long(2_040)}`),
    status: 414,
    code: 'uri_too_long',
    stays: true,
  },
  { name: 'a target over 8 KiB', send: () => get('', `/v1/pets?${long(9_000)}`), status: 414, code: 'uri_too_long' },
  {
    name: 'an Expect nobody can meet',
    send: () => post(`Expect: wonders\r\nContent-Length: ${PET.length}\r\n`, PET),
    status: 417,
    code: 'expectation_failed',
  },
  {
    name: 'a body announced too large',
    send: () => post('Content-Length: 65537\r\n', ''),
    status: 413,
    code: 'body_too_large',
  },
  {
    name: 'an endless body',
    send: () => post('Transfer-Encoding: chunked\r\n', `${'1000\r\n'}${long(4_096)}\r\n`.repeat(40)),
    status: 413,
    code: 'body_too_large',
  },
  {
    name: 'CONNECT',
    send: () => 'CONNECT x:80 HTTP/1.1\r\nHost: x:80\r\n\r\n',
    status: 405,
    code: 'method_not_allowed',
  },
  {
    name: 'TRACE',
    send: () => `TRACE /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`,
    status: 405,
    code: 'method_not_allowed',
    stays: true,
  },
  {
    name: 'too large for 100 Continue',
    send: () => post('Expect: 100-continue\r\nContent-Length: 99999\r\n', ''),
    status: 413,
    code: 'body_too_large',
  },
  {
    name: 'no key for 100 Continue',
    send: () =>
      `POST /v1/pets HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 29\r\n\r\n`,
    status: 401,
    code: 'missing_api_key',
  },
  { name: 'no body at all', send: () => bare('POST'), status: 400, code: 'invalid_json', stays: true },
  {
    name: 'an Expect nobody can meet, in HTTP/1.0',
    send: () => get('Expect: wonders\r\n', '/v1/pets', '1.0'),
    status: 417,
    code: 'expectation_failed',
  },
];

for (const { name, send, status, code, stays } of TRAPS) {
  test(`${name}: ${status} ${code}`, async () => {
    const reply = await exchangeOne(service.port, send(), stays ? { replies: 1 } : {});
    assertError(reply, status, code as string);
    assert.equal(reply.headers.get('connection') === 'close', !stays, 'Connection: close');
  });
}

test('what is unusual but right is served', async () => {
  const rows: [string, string | Buffer, number][] = [
    ['HTTP/1.0 without Host', `GET /v1/pets HTTP/1.0\r\nAuthorization: Bearer ${key}\r\n\r\n`, 200],
    ['an absolute target', get('', 'http://x/v1/pets'), 200],
    ['an absolute target without a path', 'GET http://x HTTP/1.1\r\nHost: x\r\n\r\n', 200],
    ['an empty line first', `\r\n${get()}`, 200],
    ['a body of length 0 on GET', get('Content-Length: 0\r\n'), 200],
    ['an upgrade nobody offers', get(UPGRADE), 200],
    ['OPTIONS *', 'OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n', 204],
    ['100 headers', get('A: b\r\n'.repeat(98)), 200],
    [
      'chunks',
      post('Transfer-Encoding: chunked\r\n', `${PET.length.toString(16)};a=b\r\n${PET}\r\n0\r\nT: x\r\n\r\n`),
      201,
    ],
  ];
  for (const [name, bytes, status] of rows) {
    const [reply] = await exchange(service.port, bytes, { replies: 1 });
    assert.equal(reply.status, status, `${name}: ${reply.body}`);
    assertCommon(reply.headers);
  }
});

test('HEAD is answered as GET, without the body', async () => {
  const socket = net.connect(service.port, '127.0.0.1');
  socket.write(`${get('Connection: close\r\n').replace('GET', 'HEAD')}`);
  let text = '';
  for await (const chunk of socket) text += chunk;
  assert.match(text, /^HTTP\/1\.1 200 /);
  assert.match(text, /\r\nContent-Length: [1-9]\d*\r\n/);
  assert.ok(text.endsWith('\r\n\r\n'));
});

test('100 Continue is sent when the body is wanted, and only then', async () => {
  const head = post(`Expect: 100-continue\r\nContent-Length: ${PET.length}\r\nConnection: close\r\n`, '');
  const socket = net.connect(service.port, '127.0.0.1');
  socket.write(head);
  let text = '';
  for await (const chunk of socket) {
    text += chunk;
    if (text === 'HTTP/1.1 100 Continue\r\n\r\n') socket.write(PET);
  }
  assert.match(text, /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 201 /);
});

test('requests sent at once are answered in order, and a fault behind one does not cost it its reply', async () => {
  const body = post(`Content-Length: ${PET.length}\r\n`, PET);
  const replies = await exchange(service.port, `${get()}${body}${get()}garbage\r\n\r\n`);
  assert.deepEqual(
    replies.map((reply) => reply.status),
    [200, 201, 200, 400],
  );
});

test('the reply to a body that is too large arrives, and no reset in its place', async () => {
  for (let i = 0; i < 20; i++) {
    const bytes = post('Content-Length: 5000000\r\n', long(2_000_000));
    assertError(await exchangeOne(service.port, bytes), 413, 'body_too_large');
  }
});

test('a request without a key is refused before its body is read', async () => {
  const bytes = 'POST /v1/pets HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 60000\r\n\r\n{';
  assertError(await exchangeOne(service.port, bytes, { replies: 1 }), 401, 'missing_api_key');
});

test('a client that has ended its side after asking gets its reply', async () => {
  const bytes = post(`Content-Length: ${PET.length}\r\n`, PET);
  for (let i = 0; i < 5; i++) assert.equal((await exchangeOne(service.port, bytes, { end: true })).status, 201);
  assertError(await exchangeOne(service.port, bytes.slice(0, -5), { end: true }), 400, 'bad_request');
});

test('CONNECT waits for the reply before it, and a reset after it hurts nobody', async () => {
  const connect = 'CONNECT x:80 HTTP/1.1\r\nHost: x:80\r\n\r\n';
  const replies = await exchange(service.port, post(`Content-Length: ${PET.length}\r\n`, PET) + connect);
  assert.deepEqual(
    replies.map((reply) => reply.status),
    [201, 405],
  );
  for (let i = 0; i < 10; i++) {
    const socket = net.connect({ port: service.port, host: '127.0.0.1', allowHalfOpen: true });
    await once(socket, 'connect');
    socket.write(connect);
    if (i % 2 === 0) await once(socket, 'data');
    socket.resetAndDestroy();
  }
  assert.equal((await exchangeOne(service.port, get(), { replies: 1 })).status, 200);
});

test('what follows a request that ended the connection is ignored, and a flood of it ends it at once', async () => {
  const refused = 'GET /v1/pets HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n';
  assertError(await exchangeOne(service.port, refused + get().repeat(3)), 400, 'bad_request');
  const socket = net.connect(service.port, '127.0.0.1').on('error', () => {});
  const began = performance.now();
  socket.write(refused + get().repeat(1_000));
  socket.resume();
  await once(socket, 'close');
  assert.ok(performance.now() - began < 900, 'before the time to linger is over');
});

/** What comes first on a connection that ends with the reply to it. */
const ENDING: Pick<Trap, 'name' | 'send' | 'status'>[] = [
  // Which of its parts is too long is told by the first line of the packet, so 431 where another request begins it.
  ...TRAPS.filter(({ name, stays }) => !stays && name !== 'a target over 8 KiB'),
  {
    name: 'a body that is too large and ends in the same packet',
    send: () => post('Transfer-Encoding: chunked\r\n', `10001\r\n${long(65_537)}\r\n0\r\n\r\n`),
    status: 413,
  },
  { name: 'Connection: close', send: () => get('Connection: close\r\n'), status: 200 },
  { name: 'HTTP/1.0', send: () => get('', '/v1/pets', '1.0'), status: 200 },
  { name: 'an upgrade', send: () => get(UPGRADE), status: 200 },
  { name: 'an upgrade with a body', send: () => addPet(UPGRADE), status: 201 },
];
/** Until the end of the test every write takes at least so long. */
function writeAfter({ store }: TestService, ms: number, t: TestContext): void {
  const write = store.write.bind(store);
  store.write = (decide) => wait(ms).then(() => write(decide));
  t.after(() => {
    store.write = write;
  });
}

/** What must not be added: the requests with it come too late. */
const BEHIND = '{"name":"Behind","categoryId":3}';
async function assertNoneBehind(): Promise<void> {
  await exchangeOne(service.port, addPet(), { replies: 1 }); // writes are kept in order
  const { items, more } = service.store.read.pets(0, 1_000);
  assert.equal(more, false);
  assert.ok(items.every(({ name }) => name !== 'Behind'));
}

test('what comes behind the last request of a connection is not processed, at once or later', async (t) => {
  writeAfter(service, 200, t); // so the reply that ends the connection still waits when `later` comes
  const behind = addPet('', BEHIND);
  const checks = ENDING.map(async ({ name, send, status }) => {
    const bytes = Buffer.concat([Buffer.from(send()), Buffer.from(behind)]);
    const alone = await exchange(service.port, bytes, { later: behind });
    assert.deepEqual(
      alone.map((reply) => reply.status),
      [status],
      name,
    );
    const waiting = await exchange(service.port, Buffer.concat([Buffer.from(addPet()), bytes]), { later: behind });
    assert.deepEqual(
      waiting.map((reply) => [reply.status, reply.headers.get('connection')]),
      [
        [201, 'keep-alive'],
        [status, 'close'],
      ],
      name,
    );
  });
  await Promise.all(checks);
  await assertNoneBehind();
});

test('what was taken before a flood gets its reply', async (t) => {
  writeAfter(service, 100, t);
  const flood = addPet() + get('Host: y\r\n') + get().repeat(2_000);
  const statuses = (await exchange(service.port, flood)).map((reply) => reply.status);
  assert.deepEqual(statuses, [201, 400]);
});

test('what was taken before the service ends gets its reply, also behind another', async (t) => {
  const ending = await startService();
  t.after(() => ending.close());
  const { text } = await ending.makeKey();
  writeAfter(ending, 100, t);
  const replies = exchange(ending.port, addPet().replace(key, text).repeat(2));
  await wait(50);
  await ending.app.drain(2_000);
  assert.deepEqual(
    (await replies).map((reply) => [reply.status, reply.headers.get('connection')]),
    [
      [201, 'keep-alive'],
      [201, 'close'],
    ],
  );
});

test('a packet behind an upgrade is not taken for a request', async () => {
  const inner = addPet('', BEHIND);
  const outer = post(`Content-Length: ${inner.length}\r\n`, '').replace('/pets', '/nothing');
  const reply = await exchangeOne(service.port, get(UPGRADE) + outer, { later: inner });
  assert.deepEqual([reply.status, reply.headers.get('connection')], [200, 'close']);
});

test('every reply of the deprecated operation says so, also when the message is wrong', async () => {
  const reply = await exchangeOne(service.port, get('Host: y\r\n', '/v1/pets/1'));
  assertError(reply, 400, 'bad_request');
  assert.match(reply.headers.get('sunset') ?? '', /2030/);
});

test('HTTP/1.0 knows no 100 Continue', async () => {
  const bytes = addPet('Expect: 100-continue\r\n').replace('HTTP/1.1', 'HTTP/1.0');
  assert.equal((await exchangeOne(service.port, bytes)).status, 201);
});

test('an Idempotency-Key sent twice is told what is wrong with it', async () => {
  const bytes = addPet('Idempotency-Key: a\r\nIdempotency-Key: a\r\n');
  const reply = await exchangeOne(service.port, bytes, { replies: 1 });
  assertError(reply, 400, 'bad_request');
  assert.match(reply.body, /Idempotency-Key: must be sent once/);
});

test('a request that never ends, a silent socket and a dripping one are told 408 in time', {
  timeout: 40_000,
}, async () => {
  const timed = async (bytes: string, drip?: string, onceAnswered = '') => {
    const began = performance.now();
    const socket = net.connect(service.port, '127.0.0.1');
    socket.write(bytes);
    const timer = drip === undefined ? undefined : setInterval(() => socket.writable && socket.write(drip), 500);
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk;
      socket.write(onceAnswered);
    });
    await once(socket, 'close');
    clearInterval(timer);
    return { text, seconds: (performance.now() - began) / 1000 };
  };
  // Its refusal does not wait for its body; when that never ends, there is no second reply.
  const early = timed('POST /v1/pets HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n', ' ');
  const all = await Promise.all([
    timed('GET /v1/pets HTTP/1.1\r\nHost: x\r\n'),
    timed('GET /v1/pets HTTP/1.1\r\nHost: x\r\n', 'A: b\r\n'),
    timed(post('Content-Length: 50\r\n', '{')),
    timed(post('Content-Length: 5000\r\n', '{'), ' '),
    timed(''),
    timed(addPet('', BEHIND).slice(0, -1), undefined, BEHIND.slice(-1)),
    timed(addPet('', BEHIND).replace(`\r\n${BEHIND}`, ''), undefined, `\r\n${BEHIND}`),
  ]);
  const answered = await early;
  assert.equal(answered.text.match(/HTTP\/1\.1 /g)?.length, 1, answered.text);
  assert.match(answered.text, /^HTTP\/1\.1 401 /);
  for (const { text, seconds } of all) {
    assert.match(text, /^HTTP\/1\.1 408 /);
    assert.match(text, /"code":"request_timeout"/);
    assert.match(text, /X-RateLimit-Limit: \d+/);
    assert.ok(seconds < 20, `after ${seconds} s`);
  }
  await assertNoneBehind();
});

test('a request whose client is gone is told once, and one that was refused half-way not again', {
  timeout: 20_000,
}, async () => {
  const answers: string[] = [];
  let gone: Promise<unknown> | undefined;
  const slow = await startService({
    onAnswered: ({ status, address }: Answered) => answers.push(`${status} ${address()}`),
    disk: { ...realDisk, sync: (fd) => Promise.resolve(gone).then(() => realDisk.sync(fd)) },
  });
  const { text } = await slow.makeKey();
  for (const [extra, body, leaves] of [
    [`Content-Length: ${PET.length}\r\n`, PET, true],
    [`Content-Length: ${PET.length}\r\n`, '{', true],
    ['Transfer-Encoding: chunked\r\n', 'no chunk\r\n', false],
  ] as const) {
    const client = net.connect(slow.port, '127.0.0.1').resume();
    const [socket] = (await once(slow.app.server, 'connection')) as [net.Socket];
    gone = new Promise((resolve) => socket.once('close', resolve));
    client.write(post(extra, body).replace(key, text));
    await once(slow.app.server, 'request');
    if (leaves) client.resetAndDestroy();
    await gone;
  }
  await slow.close();
  assert.deepEqual(answers.sort(), ['201 127.0.0.1', '400 127.0.0.1', '400 127.0.0.1']);
});

test('nothing in this file was an internal error', () => assert.deepEqual(service.logged, []));
