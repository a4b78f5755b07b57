/** Everything that HTTP can do to a server, over raw sockets: each trap ends in a reply out of the catalogue. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import { text } from 'node:stream/consumers';
import { after, before, type TestContext, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import type { Answered } from '../../src/exchange.ts';
import { CATALOGUE, type ErrorCode } from '../../src/http/errors.ts';
import { realDisk } from '../../src/store/file/disk.ts';
import { assertCommon, assertError, closed, exchange, exchangeOne, type RawOptions, type RawReply } from '../raw.ts';
import { startService, type TestService } from '../service.ts';

let service: TestService;
let key: string;
let answered = 0;
before(async () => {
  service = await startService({ onAnswered: () => answered++ });
  key = (await service.makeKey()).text;
});
after(() => service.close());

/** Stands for the key in what is sent. */
const KEY = 'ps_live_KEY';
const bytesOf = (text: string | Buffer) => (typeof text === 'string' ? text.replaceAll(KEY, key) : text);
const ask = (text: string | Buffer, options: RawOptions = {}) => exchange(service.port, bytesOf(text), options);
const told = (replies: RawReply[]) => replies.map(({ status, headers }) => `${status} ${headers.get('connection')}`);
const askOne = (text: string | Buffer, options: RawOptions = {}) => exchangeOne(service.port, bytesOf(text), options);

const get = (extra = '', target = '/v1/pets', version = '1.1') =>
  `GET ${target} HTTP/${version}\r\nHost: x\r\nAuthorization: Bearer ${KEY}\r\n${extra}\r\n`;
const post = (extra: string, body = '') =>
  `POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${KEY}\r\nContent-Type: application/json\r\n${extra}\r\n${body}`;
const chunked = (body: string, extra = '') => post(`${extra}Transfer-Encoding: chunked\r\n`, body);
const UPGRADE = 'Connection: Upgrade\r\nUpgrade: websocket\r\n';
const PET = '{"name":"Rex","categoryId":3}';
const addPet = (extra = '', pet = PET) => post(`${extra}Content-Length: ${pet.length}\r\n`, pet);
const long = (n: number) => 'x'.repeat(n);
const HOST = 'HTTP/1.1\r\nHost: x\r\n';

/** What ends its connection with a refusal, by its code. What has two meanings is in smuggling.ts. */
const TRAPS: Partial<Record<ErrorCode, Record<string, string | Buffer>>> = {
  bad_request: {
    'no Host': 'GET /v1/pets HTTP/1.1\r\n\r\n',
    'a Host that is none': 'GET /v1/pets HTTP/1.1\r\nHost: a b/c\r\n\r\n',
    'two Authorizations': get(`Authorization: Bearer ${KEY}\r\n`),
    'two Content-Types': addPet('Content-Type: text/plain\r\n'),
    'HTTP/0.9': 'GET /v1/pets\r\n\r\n',
    'HTTP/2.0': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    'a version that does not exist': get('', '/v1/pets', '1.9'),
    'an unknown method': `BREW /v1/pets ${HOST}\r\n`,
    'no HTTP at all': 'hello\r\n\r\n',
    'a TLS hello': Buffer.from('160301020001000001fc0303', 'hex'),
    'a folded header': get('A: b\r\n  c\r\n'),
    'a NUL in a header': get('A: \0\r\n'),
    'a target that is no path': get('', 'pets'),
    'an absolute target of another host': get('', 'http://y/v1/pets'),
    'a body on GET': `${get('Content-Length: 2\r\n')}{}`,
  },
  headers_too_large: {
    'headers over 8 KiB': get(`A: ${long(9_000)}\r\n`),
    'more than 100 headers': get('A: b\r\n'.repeat(101)),
  },
  uri_too_long: { 'a target over 8 KiB': get('', `/v1/pets?${long(9_000)}`) },
  body_too_large: {
    'chunk extensions without end': chunked(`2;${long(20_000)}\r\n{}\r\n`),
    'a body announced too large': post('Content-Length: 65537\r\n'),
    'an endless body': chunked(`1000\r\n${long(4_096)}\r\n`.repeat(40)),
    'too large for 100 Continue': post('Expect: 100-continue\r\nContent-Length: 99999\r\n'),
  },
  expectation_failed: {
    'an Expect nobody can meet': addPet('Expect: wonders\r\n'),
    'an Expect nobody can meet, in HTTP/1.0': get('Expect: wonders\r\n', '/v1/pets', '1.0'),
  },
  method_not_allowed: { CONNECT: 'CONNECT x:80 HTTP/1.1\r\nHost: x:80\r\n\r\n' },
  missing_api_key: {
    'no key for 100 Continue': `POST /v1/pets ${HOST}Expect: 100-continue\r\nContent-Length: 29\r\n\r\n`,
  },
};
/** What is refused, and the connection goes on. */
const STAYS: Partial<Record<ErrorCode, Record<string, string>>> = {
  uri_too_long: { 'a target over 2,048 characters': get('', `/v1/pets?${long(2_040)}`) },
  method_not_allowed: { TRACE: get().replace('GET', 'TRACE') },
  invalid_json: { 'no body at all': get().replace('GET', 'POST') },
};

for (const [table, connection, options] of [
  [TRAPS, 'close', {}],
  [STAYS, 'keep-alive', { replies: 1 }],
] as const) {
  for (const [code, traps] of Object.entries(table)) {
    for (const [name, bytes] of Object.entries(traps)) {
      test(`${name}: ${code}`, async () => {
        const reply = await askOne(bytes, options);
        assertError(reply, CATALOGUE[code as ErrorCode], code);
        assert.equal(reply.headers.get('connection'), connection);
      });
    }
  }
}

test('what is unusual but right is served', async () => {
  const rows: [string, string, number][] = [
    ['HTTP/1.0 without Host', `GET /v1/pets HTTP/1.0\r\nAuthorization: Bearer ${KEY}\r\n\r\n`, 200],
    ['an absolute target', get('', 'http://x/v1/pets'), 200],
    ['an absolute target without a path', 'GET http://x HTTP/1.1\r\nHost: x\r\n\r\n', 200],
    ['an empty line first', `\r\n${get()}`, 200],
    ['a body of length 0 on GET', get('Content-Length: 0\r\n'), 200],
    ['Expect in HTTP/1.0', addPet('Expect: 100-continue\r\n').replace('HTTP/1.1', 'HTTP/1.0'), 201],
    ['an upgrade nobody offers', get(UPGRADE), 200],
    ['OPTIONS *', 'OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n', 204],
    ['100 headers', get('A: b\r\n'.repeat(98)), 200],
    ['chunks', chunked(`${PET.length.toString(16)};a=b\r\n${PET}\r\n0\r\nT: x\r\n\r\n`), 201],
  ];
  for (const [name, bytes, status] of rows) {
    const [reply] = await ask(bytes, { replies: 1 });
    assert.equal(reply.status, status, `${name}: ${reply.body}`);
    assertCommon(reply.headers);
  }
});

/** All that comes back, as it comes. */
async function* received(bytes: string, socket = net.connect(service.port, '127.0.0.1')): AsyncGenerator<string> {
  socket.setEncoding('latin1').write(bytesOf(bytes));
  let text = '';
  for await (const chunk of socket) yield (text += chunk);
}

test('HEAD is answered as GET, without the body', async () => {
  const head = get('Connection: close\r\n').replace('GET', 'HEAD');
  for await (const text of received(head))
    assert.match(text, /^HTTP\/1\.1 200 [\s\S]*\r\nContent-Length: [1-9][\s\S]*\r\n\r\n$/);
});

test('100 Continue is sent when the body is wanted, and only then', async () => {
  const head = post(`Expect: 100-continue\r\nContent-Length: ${PET.length}\r\nConnection: close\r\n`);
  const socket = net.connect(service.port, '127.0.0.1');
  let all = '';
  for await (const text of received(head, socket)) {
    if (text === 'HTTP/1.1 100 Continue\r\n\r\n') socket.write(PET);
    all = text;
  }
  assert.match(all, /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 201 /);
});

test('requests sent at once are answered in order, and a fault behind one does not cost it its reply', async () => {
  const replies = await ask(`${get()}${addPet()}${get()}garbage\r\n\r\n`);
  assert.deepEqual(told(replies), ['200 keep-alive', '201 keep-alive', '200 keep-alive', '400 close']);
});

test('the reply to a body that is too large arrives, and no reset in its place', async () => {
  for (let i = 0; i < 20; i++) {
    const bytes = post('Content-Length: 5000000\r\n', long(2_000_000));
    assertError(await askOne(bytes), 413, 'body_too_large');
  }
});

test('a request without a key is refused before its body is read', async () => {
  const bytes = 'POST /v1/pets HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 60000\r\n\r\n{';
  assertError(await askOne(bytes, { replies: 1 }), 401, 'missing_api_key');
});

test('a key that is revoked while the body comes adds nothing', async () => {
  const { text, key: record } = await service.makeKey();
  const socket = net.connect(service.port, '127.0.0.1').setEncoding('latin1');
  const [head, tail] = [addPet().slice(0, -1), addPet().slice(-1)];
  const before = service.store.read.counts().pets;
  socket.write(head.replaceAll(KEY, text));
  await once(service.app.server, 'request');
  await service.store.write(() => ({ op: 'setKey', key: { ...record, revokedAt: service.clock.wall() } }));
  socket.write(tail);
  const [reply] = await once(socket, 'data');
  assert.match(reply, /^HTTP\/1\.1 401 .*"code":"invalid_api_key"/s);
  assert.equal(service.store.read.counts().pets, before);
  socket.destroy();
});

test('a client that has ended its side after asking gets its reply', async () => {
  const bytes = addPet();
  for (let i = 0; i < 5; i++) assert.equal((await askOne(bytes, { end: true })).status, 201);
  assertError(await askOne(bytes.slice(0, -5), { end: true }), 400, 'bad_request');
});

test('CONNECT waits for the reply before it, and a reset after it hurts nobody', async () => {
  const connect = 'CONNECT x:80 HTTP/1.1\r\nHost: x:80\r\n\r\n';
  assert.deepEqual(told(await ask(addPet() + connect)), ['201 keep-alive', '405 close']);
  for (let i = 0; i < 10; i++) {
    const socket = net.connect({ port: service.port, host: '127.0.0.1', allowHalfOpen: true });
    await once(socket, 'connect');
    socket.write(connect);
    if (i % 2 === 0) await once(socket, 'data');
    socket.resetAndDestroy();
  }
  assert.equal((await askOne(get(), { replies: 1 })).status, 200);
});

test('what follows a request that ended the connection is ignored, and a flood of it ends it at once', async () => {
  const refused = get('Host: y\r\n');
  assertError(await askOne(refused + get().repeat(3)), 400, 'bad_request');
  const socket = net.connect(service.port, '127.0.0.1').resume();
  const began = performance.now();
  socket.write(bytesOf(refused + get().repeat(1_000)));
  await closed(socket);
  assert.ok(performance.now() - began < 900, 'before the time to linger is over');
});

test('who reads late finds the reply that ended the connection, whatever was sent behind it', async () => {
  for (const [first, status] of [
    ['CONNECT x:80 HTTP/1.1\r\nHost: x:80\r\n\r\n', 405],
    ['hello\r\n\r\n', 400],
  ] as const) {
    const socket = net.connect(service.port, '127.0.0.1').pause();
    const before = answered;
    socket.write(bytesOf(first));
    while (answered === before) await wait(1);
    await new Promise((sent) => socket.write('x'.repeat(2_000), sent));
    await wait(20); // a reset would be here by now, and the next bytes find it
    socket.write('x');
    assert.match(String(await text(socket)), new RegExp(`^HTTP/1.1 ${status} `), first);
  }
});

/** What comes first on a connection that ends with the reply to it. */
const ENDING: (readonly [name: string, bytes: string | Buffer, status: number])[] = [
  ...Object.entries(TRAPS).flatMap(([code, traps]) =>
    Object.entries(traps).map(([name, bytes]) => [name, bytes, CATALOGUE[code as ErrorCode]] as const),
  ),
  ['a body that is too large and ends in the same packet', chunked(`10001\r\n${long(65_537)}\r\n0\r\n\r\n`), 413],
  ['Connection: close', get('Connection: close\r\n'), 200],
  ['HTTP/1.0', get('', '/v1/pets', '1.0'), 200],
  ['an upgrade', get(UPGRADE), 200],
  ['an upgrade with a body', addPet(UPGRADE), 201],
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
  await askOne(addPet(), { replies: 1 }); // writes are kept in order
  const { items, more } = service.store.read.pets.page(0, 1_000);
  assert.equal(more, false);
  assert.ok(items.every(({ name }) => name !== 'Behind'));
}

test('what comes behind the last request of a connection is not processed, at once or later', async (t) => {
  writeAfter(service, 200, t); // so the reply that ends the connection still waits when `later` comes
  const behind = addPet('', BEHIND);
  const later = bytesOf(behind);
  const checks = ENDING.map(async ([name, first, status]) => {
    // Which of its parts is too long is told by the first line of the packet, so 431 where another request begins it.
    if (name === 'a target over 8 KiB') return;
    const bytes = Buffer.concat([Buffer.from(bytesOf(first)), Buffer.from(later)]);
    assert.deepEqual(told(await ask(bytes, { later })), [`${status} close`], name);
    const waiting = await ask(Buffer.concat([Buffer.from(bytesOf(addPet())), bytes]), { later });
    assert.deepEqual(told(waiting), ['201 keep-alive', `${status} close`], name);
  });
  await Promise.all(checks);
  await assertNoneBehind();
});

test('what was taken before a flood gets its reply', async (t) => {
  writeAfter(service, 100, t);
  const replies = ask(addPet() + get('Host: y\r\n'), { later: get().repeat(2_000) });
  assert.deepEqual(told(await replies), ['201 keep-alive', '400 close']);
});

test('what was taken before the service ends gets its reply, also behind another', async (t) => {
  const ending = await startService();
  t.after(() => ending.close());
  const { text } = await ending.makeKey();
  writeAfter(ending, 100, t);
  const replies = exchange(ending.port, addPet().replaceAll(KEY, text).repeat(2));
  await wait(50);
  await ending.app.drain(2_000);
  assert.deepEqual(told(await replies), ['201 keep-alive', '201 close']);
});

test('a packet behind an upgrade is not taken for a request', async () => {
  const inner = addPet('', BEHIND);
  const outer = post(`Content-Length: ${inner.length}\r\n`, '').replace('/pets', '/nothing');
  assert.deepEqual(told(await ask(get(UPGRADE) + outer, { later: inner })), ['200 close']);
});

test('every reply of the deprecated operation says so, also when the message is wrong', async () => {
  const reply = await askOne(get('Host: y\r\n', '/v1/pets/1'));
  assertError(reply, 400, 'bad_request');
  assert.match(reply.headers.get('sunset') ?? '', /2030/);
});

test('an Idempotency-Key sent twice is told what is wrong with it', async () => {
  const bytes = addPet('Idempotency-Key: a\r\nIdempotency-Key: a\r\n');
  const reply = await askOne(bytes, { replies: 1 });
  assertError(reply, 400, 'bad_request');
  assert.match(reply.body, /Idempotency-Key: must be sent once/);
});

test('a request that never ends or drips is told 408 in time, and a silent socket is closed', {
  timeout: 240_000,
}, async () => {
  const timed = async (bytes: string, drip?: string, onceAnswered = '') => {
    const began = performance.now();
    const socket = net.connect(service.port, '127.0.0.1');
    const ended = closed(socket); // by a reset, where a drip comes when all is over
    socket.write(bytesOf(bytes));
    const timer = drip === undefined ? undefined : setInterval(() => socket.writable && socket.write(drip), 500);
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk;
      socket.write(onceAnswered);
    });
    await ended;
    clearInterval(timer);
    return { text, seconds: (performance.now() - began) / 1000 };
  };
  // Its refusal does not wait for its body; when that never ends, there is no second reply.
  const unused = timed('');
  const early = timed('POST /v1/pets HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n', ' ');
  const all = await Promise.all([
    timed('GET /v1/pets HTTP/1.1\r\nHost: x\r\n'),
    timed('GET /v1/pets HTTP/1.1\r\nHost: x\r\n', 'A: b\r\n'),
    timed(post('Content-Length: 50\r\n', '{')),
    timed(post('Content-Length: 5000\r\n', '{'), ' '),
    timed(addPet('', BEHIND).slice(0, -1), undefined, BEHIND.slice(-1)),
    timed(addPet('', BEHIND).replace(`\r\n${BEHIND}`, ''), undefined, `\r\n${BEHIND}`),
  ]);
  const answered = await early;
  assert.equal(answered.text.match(/HTTP\/1\.1 /g)?.length, 1, answered.text);
  assert.match(answered.text, /^HTTP\/1\.1 401 /);
  assert.equal((await unused).text, '', 'where nothing was asked, nothing is answered');
  for (const { text, seconds } of all) {
    assert.match(text, /^HTTP\/1\.1 408 /);
    assert.match(text, /"code":"request_timeout"/);
    assert.match(text, /X-RateLimit-Limit: \d+/);
    assert.ok(seconds < 60, `after ${seconds} s`);
  }
  await assertNoneBehind();
});

test('a request whose client is gone is told once, and one that was refused half-way not again', {
  timeout: 240_000,
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
    client.write(post(extra, body).replaceAll(KEY, text));
    await once(slow.app.server, 'request');
    if (leaves) client.resetAndDestroy();
    await gone;
  }
  await slow.close();
  assert.deepEqual(answers.sort(), ['201 127.0.0.1', '400 127.0.0.1', '400 127.0.0.1']);
});

test('nothing in this file was an internal error', () => assert.deepEqual(service.logged, []));
