/** Whatever stands between: what the client says of it, whether it asks again, and whether the thing may be done. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import test from 'node:test';
import { type Dispatcher, fetch as undiciFetch } from 'undici';
import { type Fetch, PetstoreClient, type PetstoreError } from '../../src/client/client.ts';
import { startNginx, withoutNginx } from '../nginx.ts';
import { freePort } from '../program.ts';
import { all, type Fault, failure, harness, html, inTurn, json, KEY, newPet, REX, refusal } from './front.ts';

const ORDER = { id: 3, petId: 1, status: 'delivered', placedAt: '2026-01-01T00:00:00.000Z' };
/** What a proxy says in the form of the service: it cannot bear the service's id of a request. */
const asService = (status: number, code: string) => json({ code, message: 'as the proxy has it', status }, {}, status);
const without = (status: number, type?: string): Fault => ({ status, headers: type ? { 'content-type': type } : {} });

interface Luck {
  fault: Fault;
  /** Of a message: `URL` stands for the address. */
  says: RegExp | string;
  code: string;
  /** Of getOrder, createPet and updateOrder: how often each is sent. */
  tries: [number, number, number];
  /** Whether a createPet and an updateOrder may be done. */
  unknown: [boolean, boolean];
}

const not = "not the service's";
const UNSURE: Pick<Luck, 'tries' | 'unknown'> = { tries: [6, 6, 1], unknown: [true, true] };
const SURE: Pick<Luck, 'tries' | 'unknown'> = { tries: [6, 6, 6], unknown: [false, false] };
const FINAL: Pick<Luck, 'tries' | 'unknown'> = { tries: [1, 1, 1], unknown: [false, false] };
const ODD: Pick<Luck, 'tries' | 'unknown'> = { tries: [1, 1, 1], unknown: [true, true] };

const LUCK: Record<string, Luck> = {
  'a proxy without its upstream': {
    fault: html(502),
    says: `502 text/html from URL, ${not}`,
    code: 'bad_reply',
    ...UNSURE,
  },
  'a proxy that waited in vain': {
    fault: html(504),
    says: `504 text/html from URL, ${not}`,
    code: 'bad_reply',
    ...UNSURE,
  },
  'a proxy that says unavailable': { fault: asService(503, 'unavailable'), says: /./, code: 'unavailable', ...UNSURE },
  'a proxy that says storage_full': { fault: asService(507, 'storage_full'), says: /./, code: 'storage_full', ...ODD },
  'the service, unavailable': { fault: refusal(503, 'unavailable'), says: /./, code: 'unavailable', ...SURE },
  'the service, and who knows': {
    fault: refusal(503, 'outcome_unknown'),
    says: /./,
    code: 'outcome_unknown',
    ...UNSURE,
  },
  'a bug of the service': { fault: refusal(500, 'internal_error'), says: /./, code: 'internal_error', ...UNSURE },
  'a proxy with a 520': { fault: html(520), says: `520 text/html from URL, ${not}`, code: 'bad_reply', ...UNSURE },
  'a proxy with a 529': {
    fault: without(529),
    says: `529 with an empty body from URL, ${not}`,
    code: 'bad_reply',
    ...UNSURE,
  },
  'a proxy that limits': { fault: html(429), says: `429 text/html from URL, ${not}`, code: 'bad_reply', ...UNSURE },
  'a proxy that limits, in the form of the service': {
    fault: asService(429, 'rate_limited'),
    says: /./,
    code: 'rate_limited',
    ...UNSURE,
  },
  'the service, which limits': { fault: refusal(429, 'rate_limited'), says: /./, code: 'rate_limited', ...SURE },
  'a limit of the service whose body breaks off': {
    fault: { ...refusal(429, 'rate_limited'), isHalf: true },
    says: /broke before/,
    code: 'network',
    ...SURE,
  },
  'a conflict of the service whose body breaks off': {
    fault: { ...refusal(409, 'pet_unavailable'), isHalf: true },
    says: /broke before/,
    code: 'network',
    ...UNSURE,
  },
  'the service, which refuses': { fault: refusal(400, 'invalid_body'), says: /./, code: 'invalid_body', ...FINAL },
  'a proxy that refuses': { fault: asService(400, 'invalid_body'), says: /./, code: 'invalid_body', ...ODD },
  'a page with the id of a request': {
    fault: { ...html(404), headers: { 'content-type': 'text/html', 'x-request-id': 'r' } },
    says: `404 text/html from URL, ${not}`,
    code: 'bad_reply',
    ...ODD,
  },
  'a proxy whose id of the request is empty': {
    fault: refusal(429, 'rate_limited', { 'x-request-id': '' }),
    says: /./,
    code: 'rate_limited',
    ...UNSURE,
  },
  'a page that is not there': { fault: html(404), says: `404 text/html from URL, ${not}`, code: 'bad_reply', ...ODD },
  'a wall': { fault: html(403), says: `403 text/html from URL, ${not}`, code: 'bad_reply', ...ODD },
  'a redirect': {
    fault: { status: 302, headers: { location: 'http://127.0.0.1:1/login' } },
    says: `302 with an empty body from URL, leading to http://127.0.0.1:1/login, ${not}`,
    code: 'bad_reply',
    ...ODD,
  },
  'an empty 200': { fault: without(200), says: `200 with an empty body from URL, ${not}`, code: 'bad_reply', ...ODD },
  'a page, 200': { fault: html(200), says: `200 text/html from URL, ${not}`, code: 'bad_reply', ...ODD },
  'no type': { fault: { status: 200, body: 'x' }, says: `200 of no type from URL, ${not}`, code: 'bad_reply', ...ODD },
  'other JSON': {
    fault: json({}),
    says: '200 application/json from URL, not the expected reply',
    code: 'bad_reply',
    ...ODD,
  },
  'a late 408 of a proxy': { fault: html(408), says: `408 text/html from URL, ${not}`, code: 'bad_reply', ...UNSURE },
  'a connection that breaks': {
    fault: 'lost',
    says: /^the connection to URL broke before/,
    code: 'network',
    ...UNSURE,
  },
  'a body that breaks off': {
    fault: { ...json(REX), isHalf: true },
    says: /^the connection to URL broke before/,
    code: 'network',
    ...UNSURE,
  },
};

const made = (error: PetstoreError) => [error.code, error.tries, error.outcomeUnknown];

for (const [name, { fault, says, code, tries, unknown }] of Object.entries(LUCK)) {
  test(`bad luck: ${name}`, async (t) => {
    const { client, front } = await harness(t, () => fault);
    const calls = [() => client.getOrder(3), () => client.createPet(newPet), () => client.updateOrder(3, 'delivered')];
    const errors: PetstoreError[] = [];
    for (const call of calls) errors.push(await failure(call()));
    const expected = tries.map((count, n) => [code, count, n > 0 && unknown[n - 1]]);
    assert.deepEqual(errors.map(made), expected);
    assert.equal(
      front.asked.length,
      tries.reduce((sum, count) => sum + count),
    );
    const ways = ['GET /v1/store/orders/3', 'POST /v1/pets', 'PATCH /v1/store/orders/3'];
    for (const [n, { message }] of errors.entries()) {
      const [method, path] = ways[n].split(' ');
      const said = message.replace(`${method} ${front.url}${path}`, 'URL').replace(front.url, 'URL');
      if (typeof says === 'string') assert.equal(said, says);
      else assert.match(said, says);
    }
  });
}

test('bad luck: bytes that are not UTF-8, and a reply that has no end', async (t) => {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', (data) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n');
      if (String(data).includes('orders/1')) return socket.end(Buffer.from([0x7b, 0x22, 0xff, 0x7d]));
      const flow = setInterval(() => socket.write('[]'.repeat(40_000)), 1);
      socket.on('close', () => clearInterval(flow));
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => server.close());
  const { port } = server.address() as { port: number };
  const { client } = await harness(t, () => 'lost', { baseUrl: `http://127.0.0.1:${port}` });
  const [bytes, endless] = [await failure(client.getOrder(1)), await failure(client.getOrder(2))];
  assert.match(bytes.message, /^200 application\/json from GET .*, not the service's$/);
  assert.deepEqual([made(endless), endless.message], [['bad_reply', 1, false], 'the reply has over 1048576 bytes']);
});

test('what never left the machine ends at once, by name; but a refused connection may be a restart', async (t) => {
  const plain = await harness(t, () => json([]));
  const cases: [baseUrl: string, tries: number, says: RegExp][] = [
    ['http://nohost.invalid', 1, /^cannot reach http:\/\/nohost\.invalid: there is no such host; nothing was sent$/],
    [plain.front.url.replace('http', 'https'), 1, /: it does not speak TLS; nothing was sent/],
    ['http://127.0.0.1:1', 1, /: fetch does not connect to this port; nothing was sent/],
    [`http://127.0.0.1:${await freePort()}`, 6, /: connection refused; nothing was sent$/],
  ];
  for (const [baseUrl, tries, says] of cases) {
    const { client } = await harness(t, () => 'lost', { baseUrl });
    const error = await failure(client.updateOrder(3, 'delivered'));
    const isTemporary = /looked up just now/.test(error.message); // a machine that has no resolver
    assert.deepEqual(made(error), ['network', isTemporary ? 6 : tries, false], error.message);
    if (!isTemporary) assert.match(error.message, says);
  }
});

/** As fetch tells it: the reason is the cause. */
const broken = (facts: object, message = 'broke') =>
  new TypeError('fetch failed', { cause: Object.assign(new Error(message), facts) });

test('nothing was sent only where that is told of the connection, not of what came after the request', async (t) => {
  const connect = (code: string) => broken({ code, syscall: 'connect' }, `connect ${code} 192.0.2.1:80`);
  const addresses = Object.assign(new AggregateError([connect('ENETUNREACH').cause, connect('ECONNREFUSED').cause]), {
    code: 'ENETUNREACH',
  });
  const cases: [error: unknown, tries: number, outcomeUnknown: boolean, says: RegExp][] = [
    [connect('EHOSTUNREACH'), 1, false, /: there is no route to the host; nothing was sent$/],
    [new TypeError('fetch failed', { cause: addresses }), 6, false, /: connection refused; nothing was sent$/],
    [broken({ code: 'CERT_HAS_EXPIRED' }), 1, false, /: its certificate is not trusted; nothing was sent$/],
    ...['EHOSTUNREACH', 'ECONNREFUSED', 'EPROTO', 'ERR_SSL_WRONG_VERSION_NUMBER', 'CERT_HAS_EXPIRED'].map(
      (code): [unknown, number, boolean, RegExp] => [
        broken({ code, syscall: 'read' }, `read ${code}`),
        1,
        true,
        /^the connection to \S+ broke before a complete reply came: fetch failed \w+ read/,
      ],
    ),
    [broken({ code: 'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED' }), 1, true, /broke before/],
    [broken({ code: 'ERR_SSL_DECRYPTION_FAILED_OR_BAD_RECORD_MAC' }), 1, true, /broke before/],
    [new TypeError('error decoding the reply: network unreachable'), 1, true, /broke before/],
  ];
  for (const [error, ...expected] of cases) {
    const { client } = await harness(t, () => 'lost', { fetch: () => Promise.reject(error) });
    const { tries, outcomeUnknown, message } = await failure(client.updateOrder(3, 'delivered'));
    assert.deepEqual([tries, outcomeUnknown], expected.slice(0, 2), message);
    assert.match(message, expected[2]);
  }
  const fetch: Fetch = async () => {
    const pull = () => Promise.reject(broken({ code: 'EHOSTUNREACH' }, 'connect EHOSTUNREACH'));
    return new Response(new ReadableStream({ pull }), { headers: { 'x-request-id': 'r' } });
  };
  const { client } = await harness(t, () => 'lost', { fetch });
  const { message, outcomeUnknown } = await failure(client.updateOrder(3, 'delivered'));
  assert.deepEqual([/nothing was sent/.test(message), outcomeUnknown], [false, true], 'its head had come');
});

test('through nginx: what it cannot know is not known, and what was done is not done twice', {
  skip: withoutNginx,
}, async (t) => {
  const { front } = await harness(t, () => 'lost');
  const { url, dispatcher } = await startNginx(t, new URL(front.url).host);
  const fetch: Fetch = (url, init) =>
    undiciFetch(url, { ...init, dispatcher: dispatcher as Dispatcher } as never) as never;
  const { client } = await harness(t, () => 'lost', { baseUrl: url, fetch });
  front.asked.length = 0;
  for (const fault of ['lost', { ...json(ORDER), isHalf: true }] as const) {
    front.fault = inTurn(fault, json(ORDER));
    const error = await failure(client.updateOrder(3, 'delivered'));
    assert.deepEqual([error.tries, error.outcomeUnknown, error.requestId], [1, true, undefined], error.message);
    assert.equal(front.asked.splice(0).length, 1, 'it was not sent again');
  }
  front.fault = inTurn('lost', json(REX, {}, 201));
  assert.deepEqual(await client.createPet(newPet), REX);
  assert.equal(front.asked[0].headers['idempotency-key'], front.asked[1].headers['idempotency-key']);
  front.fault = inTurn(refusal(503, 'unavailable'), json(ORDER));
  assert.deepEqual(await client.updateOrder(3, 'delivered'), ORDER, 'the service itself says that nothing was done');

  const strict = new PetstoreClient({ baseUrl: url, key: KEY });
  const error = await failure(strict.createPet(newPet));
  assert.match(error.message, /: its certificate is not trusted; nothing was sent/);
  assert.deepEqual(made(error), ['network', 1, false]);
  assert.deepEqual(await failure(all(strict.listPets())).then(({ tries }) => tries), 1);
});
