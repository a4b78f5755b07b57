/** Which calls are sent again, how long the client waits before, and whether a failed one may have been done. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { inspect } from 'node:util';
import { freePort } from '../../program.ts';
import type { Fetch } from '../client.ts';
import {
  all,
  created,
  type Fault,
  failure,
  harness,
  html,
  inTurn,
  json,
  KEY,
  newPet,
  REX,
  refusal,
  retryAfter,
} from './proxy.ts';

/** An error in the form of the service, from a proxy: without the service's id of the request. */
const asService = (status: number, code: string) => json({ code, message: 'by the proxy', status }, {}, status);

/** Of a read, a POST, a DELETE and a PATCH: the number of tries; and whether one of the last three may be done. */
interface Expected {
  tries: [number, number, number, number];
  unknown: boolean;
}
const UNSURE: Expected = { tries: [6, 6, 6, 1], unknown: true };
const NOT_DONE: Expected = { tries: [6, 6, 6, 6], unknown: false };
const REFUSED: Expected = { tries: [1, 1, 1, 1], unknown: false };
const ODD: Expected = { tries: [1, 1, 1, 1], unknown: true };
const notOurs = (what: string) => `${what} from URL, not the service's`;
const BROKEN = /^the connection to URL broke before a complete reply came/;

const FAULTS: [name: string, fault: Fault, code: string, message: RegExp | string, expected: Expected][] = [
  ['a connection that breaks', 'lost', 'network', BROKEN, UNSURE],
  ['a body that breaks off', { ...json(REX), isHalf: true }, 'network', BROKEN, UNSURE],
  ['a bug of the service', refusal(500, 'internal_error'), 'internal_error', /./, UNSURE],
  ['the service, whose disk failed', refusal(503, 'outcome_unknown'), 'outcome_unknown', /./, UNSURE],
  ['the service, unavailable', refusal(503, 'unavailable'), 'unavailable', 'because of unavailable', NOT_DONE],
  ['the service, too slow a request', refusal(408, 'request_timeout'), 'request_timeout', /./, NOT_DONE],
  ['the service, which limits', refusal(429, 'rate_limited'), 'rate_limited', /./, NOT_DONE],
  ['its limit, cut', { ...refusal(429, 'rate_limited'), isHalf: true }, 'network', BROKEN, NOT_DONE],
  ['its conflict, cut', { ...refusal(409, 'pet_unavailable'), isHalf: true }, 'network', BROKEN, NOT_DONE],
  ['a conflict', refusal(409, 'pet_unavailable'), 'pet_unavailable', /./, REFUSED],
  ['a bad body', refusal(400, 'invalid_body'), 'invalid_body', /./, REFUSED],
  ['a bad key', refusal(401, 'invalid_api_key'), 'invalid_api_key', /./, REFUSED],
  ['nothing there', refusal(404, 'not_found'), 'not_found', /./, REFUSED],
  ['a key used twice', refusal(422, 'idempotency_key_reused'), 'idempotency_key_reused', /./, REFUSED],
  ['a full store', refusal(507, 'storage_full'), 'storage_full', /./, REFUSED],
  ['a proxy without its upstream', html(502), 'bad_reply', notOurs('502 text/html'), UNSURE],
  ['a proxy that waited in vain', html(504), 'bad_reply', notOurs('504 text/html'), UNSURE],
  ['a proxy with a 529', { status: 529 }, 'bad_reply', notOurs('529 with an empty body'), UNSURE],
  ['a proxy that limits', html(429), 'bad_reply', notOurs('429 text/html'), UNSURE],
  ['a proxy in the form of the service', asService(503, 'unavailable'), 'unavailable', /./, UNSURE],
  ['a proxy that limits in that form', asService(429, 'rate_limited'), 'rate_limited', /./, UNSURE],
  ['an empty id', refusal(429, 'rate_limited', { 'x-request-id': '' }), 'rate_limited', /./, UNSURE],
  ['a proxy that refuses in that form', asService(400, 'invalid_body'), 'invalid_body', /./, ODD],
  ['a page that is not there', html(404), 'bad_reply', notOurs('404 text/html'), ODD],
  ['a page, 200', html(200), 'bad_reply', notOurs('200 text/html'), ODD],
  ['no type', { status: 200, body: 'x' }, 'bad_reply', notOurs('200 of no type'), ODD],
  ['other JSON', json({}), 'bad_reply', '200 application/json from URL, not the expected reply', ODD],
  [
    'a redirect',
    { status: 302, headers: { location: 'http://127.0.0.1:1/login' } },
    'bad_reply',
    notOurs('302 with an empty body').replace(',', ', leading to http://127.0.0.1:1/login,'),
    ODD,
  ],
];

for (const [name, fault, code, message, { tries, unknown }] of FAULTS) {
  test(`a failed call is sent again only where that is safe: ${name}`, async (t) => {
    const { client, proxy } = await harness(t, () => fault);
    const calls = [
      () => client.getOrder(3),
      () => client.createPet(newPet, { idempotencyKey: 'mine' }),
      () => client.deletePet(3),
      () => client.updateOrder(3, 'delivered'),
      () => client.updatePet(3, { name: 'Max' }),
    ];
    for (const [n, call] of calls.entries()) {
      const error = await failure(call());
      const expected = [code, tries[Math.min(n, 3)], n > 0 && unknown];
      assert.deepEqual([error.code, error.tries, error.outcomeUnknown], expected, `call ${n}`);
      const { method, path, headers } = proxy.received[0];
      assert.deepEqual([proxy.received.length, error.idempotencyKey], [error.tries, headers['idempotency-key']]);
      const said = error.message.replace(`${method} ${proxy.url}${path}`, 'URL').replace(proxy.url, 'URL');
      if (typeof message === 'string') assert.ok(said.startsWith(message), said);
      else assert.match(said, message);
      proxy.received.length = 0;
    }
  });
}

test('a refusal says nothing of the tries before it', async (t) => {
  const { client, proxy } = await harness(t, inTurn('lost', refusal(404, 'not_found')));
  const removed = await failure(client.deletePet(7));
  assert.deepEqual([removed.code, removed.tries, removed.outcomeUnknown], ['not_found', 2, true]);
  proxy.fault = inTurn('lost', refusal(429, 'rate_limited', retryAfter(999)));
  const { code, outcomeUnknown } = await failure(client.createPet(newPet));
  assert.deepEqual([code, outcomeUnknown], ['rate_limited', true]);
});

test('POST goes under one key for all tries of a call, another for another call, or the one given', async (t) => {
  const { client, proxy } = await harness(t, inTurn('lost', refusal(503, 'outcome_unknown'), created));
  for (const idempotencyKey of [undefined, undefined, 'mine']) await client.createPet(newPet, { idempotencyKey });
  const [first, ...others] = proxy.received.map(({ headers }) => headers['idempotency-key']);
  assert.match(String(first), /^[0-9a-f]{32}$/);
  assert.notEqual(others[2], first);
  assert.deepEqual(others, [first, first, others[2], 'mine']);
});

test('waits as Retry-After says and up to a second more, also where the body breaks off; else backs off', async (t) => {
  const limited = (seconds: number) => refusal(429, 'rate_limited', retryAfter(seconds));
  const answers = inTurn(
    limited(7),
    refusal(503, 'unavailable', retryAfter(2)),
    { ...limited(9), isHalf: true },
    created,
  );
  const { client, proxy, waits } = await harness(t, answers);
  assert.deepEqual(await client.createPet(newPet), REX);
  assert.deepEqual(waits.splice(0), [8_000, 3_000, 10_000]);
  proxy.fault = () => refusal(503, 'unavailable');
  const error = await failure(client.createPet(newPet));
  assert.deepEqual(waits.splice(0), [200, 400, 800, 1_600, 3_200]);
  assert.deepEqual([error.name, error.status, error.requestId], ['PetstoreError', 503, 'r-1']);
  for (const shown of [error, client]) assert.ok(!inspect(shown, { depth: 9, showHidden: true }).includes(KEY));
  t.mock.method(Math, 'random', () => 0);
  await failure(client.createPet(newPet));
  assert.deepEqual(waits, [150, 300, 600, 1_200, 2_400]);
});

test('Retry-After as a date counts from the date of the reply; one that is over, or 0, is no time', async (t) => {
  const at = (seconds: number) => new Date(Date.UTC(2031, 0, 1, 12, 0, seconds)).toUTCString();
  const until = (end: string) => refusal(503, 'unavailable', { Date: at(0), ...retryAfter(end) });
  const answers = inTurn(until(at(7)), until(at(-60)), until('0'), until('soon'), created);
  const { client, waits } = await harness(t, answers);
  await client.createPet(newPet);
  assert.deepEqual(waits, [8_000, 400, 800, 1_600]);
});

test('what never left the machine ends at once, by name; but a refused connection may be a restart', async (t) => {
  const { proxy } = await harness(t, () => json([]));
  const cases: [baseUrl: string, tries: number, says: RegExp][] = [
    ['http://nohost.invalid', 1, /^cannot reach http:\/\/nohost\.invalid: there is no such host; nothing was sent$/],
    [proxy.url.replace('http', 'https'), 1, /: it does not speak TLS; nothing was sent/],
    [`http://127.0.0.1:${await freePort()}`, 6, /: connection refused; nothing was sent$/],
    [`http://localhost:${await freePort()}`, 6, /: connection refused; nothing was sent$/],
  ];
  for (const [baseUrl, tries, says] of cases) {
    const { client } = await harness(t, () => 'lost', { baseUrl });
    const error = await failure(client.updateOrder(3, 'delivered'));
    const isTemporary = /looked up just now/.test(error.message); // a machine that has no resolver
    const found = [error.code, error.tries, error.outcomeUnknown];
    assert.deepEqual(found, ['network', isTemporary ? 6 : tries, false], error.message);
    if (!isTemporary) assert.match(error.message, says);
  }
});

test('nothing was sent only where the connection failed, not what came after the request', async (t) => {
  /** As fetch reports it: the reason is the cause. */
  const broken = (code: string, syscall?: string) =>
    new TypeError('fetch failed', { cause: Object.assign(new Error(`${syscall} ${code}`), { code, syscall }) });
  const cases: [error: unknown, tries: number, outcomeUnknown: boolean, says: RegExp][] = [
    [broken('EHOSTUNREACH', 'connect'), 6, false, /: there is no route to the host; nothing was sent$/],
    [broken('CERT_HAS_EXPIRED'), 1, false, /: its certificate is not trusted; nothing was sent$/],
    [broken('EHOSTUNREACH', 'read'), 1, true, /^the connection to \S+ broke before .*: fetch failed: read EHOST/],
    [broken('ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED'), 1, true, /broke before/],
    [new TypeError('network unreachable'), 1, true, /: network unreachable$/],
    [undefined, 1, true, /: undefined$/],
  ];
  for (const [error, ...expected] of cases) {
    const { client } = await harness(t, () => 'lost', { fetch: () => Promise.reject(error) });
    const { tries, outcomeUnknown, message } = await failure(client.updateOrder(3, 'delivered'));
    assert.deepEqual([tries, outcomeUnknown], expected.slice(0, 2), message);
    assert.match(message, expected[2]);
  }
  const fetch: Fetch = async () => {
    const pull = () => Promise.reject(broken('EHOSTUNREACH', 'connect'));
    return new Response(new ReadableStream({ pull }), { headers: { 'x-request-id': 'r' } });
  };
  const { client } = await harness(t, () => 'lost', { fetch });
  const { message, outcomeUnknown } = await failure(client.updateOrder(3, 'delivered'));
  assert.deepEqual([/nothing was sent/.test(message), outcomeUnknown], [false, true], 'its head had come');
});

test('a call ends with its budget, and no budget outlasts the 24 hours of an Idempotency-Key', async (t) => {
  for (const budgetMs of [86_400_000, 2 ** 31, Number.POSITIVE_INFINITY]) {
    const answers = inTurn('cut', refusal(429, 'rate_limited', retryAfter(12 * 3_600)));
    const { client, time } = await harness(t, answers, { budgetMs });
    const { code, tries } = await failure(client.createPet(newPet));
    assert.deepEqual([code, tries], ['rate_limited', 3]);
    assert.ok(time.now < 23 * 3_600_000);
  }
  const plain = await harness(t, () => refusal(503, 'unavailable'), { budgetMs: 1_000 });
  assert.equal((await failure(all(plain.client.listPets()))).tries, 3, 'a wait of 800 ms is beyond the budget');
});
