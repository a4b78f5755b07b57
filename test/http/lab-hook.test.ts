/** The one place where the way of a request lets the lab have a part in it, with a hook that does next to nothing. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { SlotLimiter } from '../../src/access/limiter.ts';
import { SetClock } from '../../src/clock.ts';
import type { Fault, LabHook } from '../../src/exchange.ts';
import { ApiError } from '../../src/http/errors.ts';
import { jsonReply } from '../../src/http/reply.ts';
import { assertError, exchange } from '../raw.ts';
import { startService } from '../service.ts';

async function start(t: TestContext, hook: Partial<LabHook> = {}) {
  const clock = new SetClock();
  const limiter = new SlotLimiter({ clock, unix: () => clock.wall() });
  const told: string[] = [];
  const lab: LabHook = {
    limiter: {
      take: ({ slot }) => limiter.take({ slot, perMinute: 2, perDay: 1_000 }),
    } as Pick<LabHook['limiter'], 'take'> as LabHook['limiter'],
    allow: (path) => (path === '/lab/echo' ? 'POST, OPTIONS' : undefined),
    answer: async ({ caller }, { query, body }) => jsonReply(200, JSON.stringify([caller?.id, query, await body()])),
    arrived: ({ id }) => assert.notEqual(id, ''),
    banned: () => {},
    around: (_exchange, _call, operate) => operate(),
    answers: ({ req, operation, fault }, { status }) => {
      told.push(`${req.from.number} ${req.method} ${req.url} ${operation?.name} ${status} ${fault?.kind}`);
      return ['X-Lab', 'yes'];
    },
    ...hook,
  };
  const service = await startService({ clock, lab });
  t.after(() => service.close());
  const { text: key } = await service.makeKey('enterprise', { perMinute: 9, perDay: 100 });
  const ask = (line: string, body = '') =>
    `${line} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Length: ${body.length}\r\n${
      body === '' ? '' : 'Content-Type: application/json\r\n'
    }\r\n${body}`;
  return { service, ask, told };
}

const PET = '{"name":"Rex","categoryId":3}';

test('what is under /lab is answered by the lab, to callers with a key, by a limit of its own', async (t) => {
  const { service, ask, told } = await start(t);
  const requests = [
    ask('POST /lab/echo?a', '1'),
    ask('GET /lab/echo'),
    ask('POST /lab/echo', '1'),
    ask('GET /v1/pets'),
    'POST /lab/echo HTTP/1.1\r\nHost: x\r\n\r\n',
    'OPTIONS /lab/echo HTTP/1.1\r\nHost: x\r\n\r\n',
  ];
  const replies = await exchange(service.port, requests.join(''), { replies: 6 });
  assert.deepEqual(
    replies.map(({ status, headers }) => [status, headers.get('x-ratelimit-remaining'), headers.get('x-lab')]),
    [
      [200, '1', 'yes'],
      [405, '0', 'yes'],
      [429, '0', 'yes'],
      [200, '8', 'yes'],
      [401, '59', undefined],
      [204, '59', undefined],
    ],
  );
  assert.equal(replies[0].body, '["k1","a",1]');
  assert.equal(replies[1].headers.get('allow'), 'POST, OPTIONS');
  assert.deepEqual(told.sort(), [
    '1 GET /lab/echo undefined 405 undefined',
    '1 GET /v1/pets listPets 200 undefined',
    '1 POST /lab/echo undefined 429 undefined',
    '1 POST /lab/echo?a undefined 200 undefined',
  ]);
});

test('a path the lab does not know is not found, and none is known without a lab', async (t) => {
  const { service, ask } = await start(t);
  assertError((await exchange(service.port, ask('GET /lab/x'), { replies: 1 }))[0], 404, 'not_found');
  const plain = await startService();
  t.after(() => plain.close());
  const [reply] = await exchange(plain.port, 'POST /lab/echo HTTP/1.1\r\nHost: x\r\n\r\n', { replies: 1 });
  assertError(reply, 404, 'not_found');
});

test('an operation can be refused in its place, and its errors are replies', async (t) => {
  const { service, ask, told } = await start(t, {
    async around(exchange, call, operate) {
      if (call.query === 'refuse') throw new ApiError('unavailable', 'as was asked for', ['Retry-After', '7']);
      const reply = await operate();
      return { ...reply, headers: [...reply.headers, 'X-Was', `${exchange.operation?.name} ${reply.status}`] };
    },
  });
  const requests = ask('GET /v1/pets?refuse') + ask('GET /v1/pets?x') + ask('POST /v1/pets', PET);
  const [refused, wrong, made] = await exchange(service.port, requests, { replies: 3 });
  assertError(refused, 503, 'unavailable');
  assert.equal(refused.headers.get('retry-after'), '7');
  assertError(wrong, 400, 'invalid_parameter');
  assert.equal(wrong.headers.get('x-was'), 'listPets 400');
  assert.equal(made.headers.get('x-was'), 'createPet 201');
  assert.equal(told.length, 3);
});

test('a reply can be sent in another way, or not at all', async (t) => {
  const { service, ask, told } = await start(t, {
    async around(exchange, _call, operate) {
      const reply = await operate();
      if (exchange.operation?.name === 'createPet') {
        exchange.fault = { kind: 'drop_after', send: ({ res }) => res.destroy() };
      } else {
        const send: Fault['send'] = ({ res }, { status, body }, headers) => {
          res.writeHead(status, headers);
          res.write(body.slice(0, 1), () => res.destroy());
        };
        exchange.fault = { kind: 'truncate', send };
      }
      return reply;
    },
  });
  assert.deepEqual(await exchange(service.port, ask('POST /v1/pets', PET)), []);
  assert.equal(service.store.read.counts().pets, 1);
  assert.deepEqual(await exchange(service.port, ask('GET /v1/pets')), []);
  assert.deepEqual(told, ['1 POST /v1/pets createPet 201 drop_after', '2 GET /v1/pets listPets 200 truncate']);
});
