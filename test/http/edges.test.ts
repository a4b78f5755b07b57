/** Everything that HTTP can do to a server, over raw sockets: each trap ends in a reply out of the catalogue. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import { text } from 'node:stream/consumers';
import { after, mock, type TestContext, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { CATALOGUE, type ErrorCode } from '../../src/http/errors.ts';
import { assertCommon, assertError, closed, exchange, exchangeOne, PET, requestsOf, told } from '../raw.ts';
import { serviceFor, startService, type TestService } from '../service.ts';
import { until } from '../until.ts';

/**
 * Behind a last reply the service reads on for a second; here for a minute, since a busy machine may keep this process
 * waiting for longer than a second, and what comes later than that gets a reset.
 */
const LINGER_MS = 1_000;
const { setTimeout: realTimeout } = globalThis;
const lingering = (run: () => void, ms?: number, ...words: []) =>
  realTimeout(run, ms === LINGER_MS ? 60 * LINGER_MS : ms, ...words);
mock.method(globalThis, 'setTimeout', lingering as typeof setTimeout);

let answered = 0;
// As behind a proxy: connections that linger for so long are not counted for their address.
const service = await startService({ onReply: () => answered++, trustProxy: 1 });
after(() => service.close());
const { text: key } = await service.makeKey();
const { get, post, addPet } = requestsOf(key);
const { port } = service;
const connect = (bytes: string | Buffer) => {
  const socket = net.connect(port, '127.0.0.1');
  socket.write(bytes);
  return socket;
};

const UPGRADE = 'Connection: Upgrade\r\nUpgrade: websocket\r\n';
const HOST = 'HTTP/1.1\r\nHost: x\r\n';
const CONNECT = 'CONNECT x:80 HTTP/1.1\r\nHost: x:80\r\n\r\n';
const long = (n: number) => 'x'.repeat(n);
const chunked = (body: string) => post('Transfer-Encoding: chunked\r\n', body);
const trailed = (count: number) =>
  chunked(`${PET.length.toString(16)}\r\n${PET}\r\n0\r\n${'A: b\r\n'.repeat(count)}\r\n`);

/** What ends its connection with a refusal, by its code. What has two meanings is in smuggling.ts. */
const TRAPS: Partial<Record<ErrorCode, Record<string, string | Buffer>>> = {
  bad_request: {
    'no Host': 'GET /v1/pets HTTP/1.1\r\n\r\n',
    'a Host that is none': 'GET /v1/pets HTTP/1.1\r\nHost: a b/c\r\n\r\n',
    'two Authorizations': get(`Authorization: Bearer ${key}\r\n`),
    'chunks in HTTP/1.0': trailed(0).replace('HTTP/1.1', 'HTTP/1.0'),
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
    'OPTIONS *': `OPTIONS * ${HOST}\r\n`,
    CONNECT,
    'an absolute target of another host': get('', 'http://y/v1/pets'),
    'a body on GET': `${get('Content-Length: 2\r\n')}{}`,
  },
  headers_too_large: {
    'headers over 8 KiB': get(`A: ${long(9_000)}\r\n`),
    'more than 100 headers': get('A: b\r\n'.repeat(101)),
    'more headers than are parsed': get('A: b\r\n'.repeat(300)),
    'trailers over 8 KiB': chunked(`0\r\nA: ${long(9_000)}\r\n\r\n`),
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
  missing_api_key: {
    'no key for 100 Continue': `POST /v1/pets ${HOST}Expect: 100-continue\r\nContent-Length: 29\r\n\r\n`,
  },
};
const traps = Object.entries(TRAPS).flatMap(([code, all]) =>
  Object.entries(all).map(([name, bytes]) => ({ name, bytes, code: code as ErrorCode })),
);

for (const { name, bytes, code } of traps) {
  test(`${name}: ${code}`, async () => {
    const reply = await exchangeOne(port, bytes);
    assertError(reply, CATALOGUE[code], code);
    assert.equal(reply.headers.get('connection'), 'close');
  });
}

test('under /v1 the key is asked for before anything else is said', async () => {
  const withoutKey = [
    ['a target that is too long', `GET /v1/pets?${long(2_100)} ${HOST}\r\n`],
    ['an Expect nobody can meet', `GET /v1/pets ${HOST}Expect: wonders\r\n\r\n`],
    ['no such path', `GET /v1/nothing ${HOST}\r\n`],
    ['another method', `PUT /v1/pets ${HOST}\r\n`],
    ['a body that is no JSON', `POST /v1/pets ${HOST}Content-Length: 1\r\n\r\nx`],
  ];
  for (const [name, bytes] of withoutKey) {
    const [reply] = await exchange(port, bytes, { replies: 1 });
    assert.equal(reply.status, 401, name);
    assertError(reply, 401, 'missing_api_key');
  }
});

test('what is unusual but right is served', async () => {
  const rows: [string, string, number][] = [
    ['HTTP/1.0 without Host', get('', '/v1/pets', '1.0').replace('Host: x\r\n', ''), 200],
    ['an absolute target', get('', 'http://x/v1/pets'), 200],
    ['an absolute target without a path', `GET http://x ${HOST}\r\n`, 200],
    ['a target of 2,048 characters', get('', `/v1/pets?${'&'.repeat(2_039)}`), 200],
    ['an empty line first', `\r\n${get()}`, 200],
    ['a body of length 0 on GET', get('Content-Length: 0\r\n'), 200],
    ['Expect in HTTP/1.0', addPet('Expect: 100-continue\r\n').replace('HTTP/1.1', 'HTTP/1.0'), 201],
    ['an upgrade nobody offers', get(UPGRADE), 200],
    ['100 headers', get('A: b\r\n'.repeat(98)), 200],
    ['100 trailers', trailed(100), 201],
    ['chunks', chunked(`${PET.length.toString(16)};a=b\r\n${PET}\r\n0\r\nT: x\r\n\r\n`), 201],
  ];
  for (const [name, bytes, status] of rows) {
    const [reply] = await exchange(port, bytes, { replies: 1 });
    assert.equal(reply.status, status, `${name}: ${reply.body}`);
    assertCommon(reply.headers, /\/v1/.test(bytes));
  }
});

test('HEAD is answered as GET, without the body', async () => {
  const head = get('Connection: close\r\n').replace('GET', 'HEAD');
  assert.match(await text(connect(head)), /^HTTP\/1\.1 200 [\s\S]*\r\nContent-Length: [1-9][\s\S]*\r\n\r\n$/);
});

test('100 Continue is sent when the body is wanted', async () => {
  const socket = connect(post(`Expect: 100-continue\r\nContent-Length: ${PET.length}\r\nConnection: close\r\n`));
  assert.equal(String(await once(socket, 'data')), 'HTTP/1.1 100 Continue\r\n\r\n');
  socket.write(PET);
  assert.match(await text(socket), /^HTTP\/1\.1 201 /);
});

test('requests sent at once are answered in order, and a fault behind them costs none its reply', async () => {
  const refused = [get().replace('GET', 'TRACE'), get().replace('GET', 'POST'), get('', `/v1/pets?${long(2_040)}`)];
  const replies = await exchange(port, `${get()}${refused.join('')}${addPet()}garbage\r\n\r\n`);
  const codes = replies.map(({ body }) => JSON.parse(body).code);
  assert.deepEqual(codes, [undefined, 'method_not_allowed', 'invalid_json', 'uri_too_long', undefined, 'bad_request']);
  assert.deepEqual(told(replies), [...[200, 405, 400, 414, 201].map((status) => `${status} keep-alive`), '400 close']);
  for (const { headers } of replies) assertCommon(headers);
});

test('the reply to a body that is too large arrives, and no reset in its place', async () => {
  const bytes = post('Content-Length: 5000000\r\n', long(2_000_000));
  for (let i = 0; i < 20; i++) assertError(await exchangeOne(port, bytes), 413, 'body_too_large');
});

test('a client that has ended its side after asking gets its reply', async () => {
  for (let i = 0; i < 5; i++) assert.equal((await exchangeOne(port, addPet(), { end: true })).status, 201);
  const early = await exchangeOne(port, addPet().slice(0, -5), { end: true });
  assert.match(assertError(early, 400, 'bad_request'), /ended early/);
});

test('a reset after CONNECT hurts nobody', async () => {
  for (let i = 0; i < 10; i++) {
    const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    await once(socket, 'connect');
    socket.write(CONNECT);
    if (i % 2 === 0) await once(socket, 'data');
    socket.resetAndDestroy();
  }
  assert.equal((await exchangeOne(port, get(), { replies: 1 })).status, 200);
});

test('who reads late finds the reply that ended the connection, whatever was sent behind it', async () => {
  for (const [first, status] of [
    [CONNECT, 400],
    ['hello\r\n\r\n', 400],
    [get('Connection: close\r\n'), 200],
    [get('', '/v1/pets', '1.0'), 200],
    [addPet('Connection: close\r\n'), 201],
    [get(UPGRADE), 200],
    ['GET /v1/pets HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n', 401],
    [get('Connection: close\r\n').replace('GET', 'HEAD'), 200], // no body follows, as in the next one
    [get('Connection: close\r\n').replace('GET', 'OPTIONS'), 204],
  ] as const) {
    const before = answered;
    const socket = connect(first).pause();
    await until(() => answered > before);
    await new Promise((sent) => socket.write(long(2_000), sent));
    await wait(20); // a reset would be here by now, and the next bytes find it
    socket.write('x');
    assert.match(await text(socket), new RegExp(`^HTTP/1.1 ${status} `), first);
  }
});

/** What comes first on a connection that ends with the reply to it. */
const ENDING: (readonly [name: string, bytes: string | Buffer, status: number])[] = [
  ...traps.map(({ name, bytes, code }) => [name, bytes, CATALOGUE[code]] as const),
  ['a body that is too large and ends in the same packet', chunked(`10001\r\n${long(65_537)}\r\n0\r\n\r\n`), 413],
  ['Connection: close', get('Connection: close\r\n'), 200],
  ['HTTP/1.0', get('', '/v1/pets', '1.0'), 200],
  ['an upgrade', get(UPGRADE), 200],
  ['an upgrade with a body', addPet(UPGRADE), 201],
  ['a 100 Continue that does not come', get('Expect: 100-continue\r\n'), 200],
  [
    'a body whose 100 Continue does not come',
    post('Expect: 100-continue\r\nContent-Length: 1\r\n', ' ', 'PUT /v1/x HTTP/1.1'),
    404,
  ],
  // What follows in its packet is no request; the next packet must not become one either.
  ['an upgrade and half a request', get(UPGRADE) + post('Content-Length: 500\r\n'), 200],
];

/** Until the end of the test every write takes at least so long. Resolves when one is asked for. */
function writeAfter({ store }: TestService, ms: number, t: TestContext): Promise<void> {
  const write = store.write.bind(store);
  t.after(() => {
    store.write = write;
  });
  return new Promise((resolve) => {
    store.write = (work) => {
      resolve();
      return wait(ms).then(() => write(work));
    };
  });
}

/** What must not be added: the requests with it come too late. */
const BEHIND = '{"name":"Behind","categoryId":3}';
async function assertNoneBehind(): Promise<void> {
  await exchangeOne(port, addPet(), { replies: 1 }); // writes are kept in order
  assert.ok([...service.store.read.pets.all()].every(({ name }) => name !== 'Behind'));
}

test('what comes behind the last request of a connection is not processed, at once or later', async (t) => {
  writeAfter(service, 200, t); // so the reply that ends the connection still waits when `later` comes
  const later = addPet('', BEHIND);
  const checks = ENDING.map(async ([name, first, status]) => {
    const bytes = Buffer.concat([Buffer.from(first as string), Buffer.from(later)]);
    assert.deepEqual(told(await exchange(port, bytes, { later })), [`${status} close`], name);
    // Behind a body, which ends without a line's end, a target is not told apart from the head that it makes too long.
    if (name === 'a target over 8 KiB') return;
    const waiting = await exchange(port, Buffer.concat([Buffer.from(addPet()), bytes]), { later });
    assert.deepEqual(told(waiting), ['201 keep-alive', `${status} close`], name);
  });
  await Promise.all(checks);
  await assertNoneBehind();
});

test('what was taken before what is no request gets its reply, however many packets come behind', async (t) => {
  const taken = writeAfter(service, 200, t);
  for (const [first, replies] of [
    [`${addPet()}garbage\r\n\r\n`, ['201 keep-alive', '400 close']],
    [addPet('Connection: close\r\n'), ['201 close']], // behind which node:http takes everything for garbage
    [addPet() + get(UPGRADE), ['201 keep-alive', '200 close']],
  ] as const) {
    const socket = connect(first).setNoDelay();
    const came = text(socket);
    await taken;
    for (let packets = 0; packets < 150; packets++) {
      socket.write('x');
      await wait(2);
    }
    const statuses = [...(await came).matchAll(/HTTP\/1\.1 (\d+)[\s\S]*?Connection: (\S+)/g)];
    assert.deepEqual(
      statuses.map(([, status, stays]) => `${status} ${stays}`),
      replies,
    );
  }
});

test('a last reply while the service stops is not lost by what its client still sends', async (t) => {
  const ending = await serviceFor(t);
  const taken = writeAfter(ending, 500, t); // so long that idle connections are closed meanwhile
  const socket = net.connect(ending.port, '127.0.0.1').setNoDelay();
  socket.pause().write(requestsOf(ending.key).addPet());
  await taken;
  const drained = ending.service.drain(60_000);
  await wait(600);
  for (let packets = 0; packets < 3; packets++) {
    await wait(100); // a reset would be here by now, and the next bytes find it
    socket.write('x');
  }
  assert.match(await text(socket), /^HTTP\/1.1 201 /);
  await drained;
});

test('a refused message is told that the operation is deprecated, and which header it must not send twice', async () => {
  const deprecated = await exchangeOne(port, get('Host: y\r\n', '/v1/pets/1'));
  assert.match(deprecated.headers.get('sunset') ?? '', /2030/);
  const twice = await exchangeOne(port, addPet('Idempotency-Key: a\r\n'.repeat(2)), { replies: 1 });
  assert.match(assertError(twice, 400, 'bad_request'), /Idempotency-Key: must be sent once/);
});

test('a request that never ends or drips is told 408 in time, and a silent socket is closed', {
  timeout: 240_000,
}, async (t) => {
  const { server } = service.service;
  assert.deepEqual([server.headersTimeout, server.requestTimeout], [10_000, 15_000]);
  const ending = await serviceFor(t);
  Object.assign(ending.service.server, { headersTimeout: 1_000, requestTimeout: 2_000 });
  const of = requestsOf(ending.key);
  const timed = async (bytes: string, drip = '', onceAnswered = '') => {
    const socket = net.connect(ending.port, '127.0.0.1');
    socket.write(bytes);
    const ended = closed(socket); // by a reset, where a drip comes when all is over
    const timer = setInterval(() => socket.writable && socket.write(drip), 500);
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk;
      socket.write(onceAnswered);
    });
    await ended;
    clearInterval(timer);
    return text;
  };
  const late = of.addPet();
  const [unused, early, ...all] = await Promise.all([
    timed(''),
    timed(`POST /v1/pets ${HOST}Content-Length: 100\r\n\r\n`, ' '),
    timed(of.get().slice(0, -2)),
    timed(`GET /v1/pets ${HOST}`, 'A: b\r\n'),
    timed(of.post('Content-Length: 50\r\n', '{')),
    timed(of.post('Content-Length: 5000\r\n', '{'), ' '),
    timed(late.slice(0, -1), '', late.slice(-1)),
    timed(late.replace(`\r\n${PET}`, ''), '', `\r\n${PET}`),
  ]);
  assert.equal(unused, '', 'where nothing was asked, nothing is answered');
  // A refusal does not wait for the body; when that never ends, there is no second reply.
  assert.match(early, /^HTTP\/1\.1 401 (?!.*HTTP\/1\.1 )/s);
  for (const text of all) assert.match(text, /^HTTP\/1\.1 408 .*"code":"request_timeout"/s);
  // Half a head has the limits of its address, half a body those of its key.
  const limits = all.map((text) => Number(/X-RateLimit-Limit: (\d+)/.exec(text)?.[1]));
  assert.deepEqual(limits, [60, 60, 1_000_000, 1_000_000, 1_000_000, 60]);
  assert.equal(ending.store.read.pets.size, 0);
});

test('nothing in this file was an internal error', () => assert.deepEqual(service.logged, []));
