/** Keys: their form, and whom they let in, for as long as they are in force. */
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { once } from 'node:events';
import net from 'node:net';
import { text } from 'node:stream/consumers';
import { it } from 'node:test';
import { crc32 } from 'node:zlib';
import { type Caller, Callers } from '../../src/access/callers.ts';
import { digestOf, environmentOf, makeKey } from '../../src/access/keys.ts';
import { type Call, write } from '../../src/shop/handler.ts';
import type { ApiKey } from '../../src/store/model.ts';
import { PET, requestsOf } from '../raw.ts';
import { serviceFor, type TestService } from '../service.ts';

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

it('makes keys of the published form, which end with the CRC-32 of all before it, and keeps their SHA-256', () => {
  for (const [environment, form] of [
    ['production', /^ps_live_[0-9A-Za-z]{36}$/],
    ['staging', /^ps_test_[0-9A-Za-z]{36}$/],
  ] as const) {
    const key = makeKey(environment);
    assert.match(key, form);
    assert.equal(environmentOf(key), environment);
    const value = [...key.slice(-6)].reduce((sum, digit) => sum * 62 + ALPHABET.indexOf(digit), 0);
    assert.equal(value, crc32(key.slice(0, -6)));
    assert.equal(digestOf(key), hash('sha256', key));
  }
  const small = 'ps_live_00000000000000000000000000000r00Rz5j';
  assert.equal(environmentOf(small), 'production', 'a small checksum has zeros');
});

it('draws all 62 characters evenly', () => {
  const KEYS = 4_000;
  const counts = new Map<string, number>();
  for (let n = 0; n < KEYS; n++) {
    for (const char of makeKey('staging').slice(8, 38)) counts.set(char, (counts.get(char) ?? 0) + 1);
  }
  const expected = (KEYS * 30) / 62;
  let chiSquare = 0;
  for (const char of ALPHABET) chiSquare += ((counts.get(char) ?? 0) - expected) ** 2 / expected;
  // 61 degrees of freedom: 130 is exceeded once in a million runs; bytes taken modulo 62 come to about 700.
  assert.ok(chiSquare < 130, `chi-square ${chiSquare}`);
});

it('catches every change of one character, and every two that changed places', () => {
  const key = makeKey('production');
  const put = (...changes: [at: number, char: string][]) =>
    environmentOf(changes.reduce((text, [at, char]) => text.slice(0, at) + char + text.slice(at + 1), key));
  for (let at = 0; at < key.length; at++) {
    for (const char of ALPHABET.replace(key[at], '')) {
      const reading = put([at, char]);
      assert.ok(at < 8 ? reading !== 'production' : reading === 'mistyped', `${char} at ${at}: ${reading}`);
    }
    for (let other = 8; other < at; other++) {
      if (key[other] !== key[at]) assert.equal(put([at, key[other]], [other, key[at]]), 'mistyped');
    }
  }
  assert.equal(environmentOf(key.replace('live', 'test')), 'mistyped', 'a key of the other environment');
});

const setKey = ({ store }: TestService, key: ApiKey, change: Partial<ApiKey> = {}) =>
  store.write((tx) => tx.keys.put({ ...key, ...change }));

it('goes by the record as it is now, also of a header that is known: the end of a grace, a plan, a revocation', async (t) => {
  const service = await serviceFor(t);
  const { text: old, key } = await service.makeKey();
  const next = makeKey('production');
  const [first] = key.secrets;
  const ask = (key: string) => service.fetch('/v1/pets', { key });
  assert.equal((await ask(old)).status, 200);
  const secrets = [{ ...first, endsAt: service.store.now() + 1_000 }, { digest: digestOf(next) }];
  await setKey(service, key, { secrets });
  for (const [ms, status] of [
    [0, 200],
    [999, 200],
    [1, 401],
  ]) {
    service.clock.advance(ms);
    assert.deepEqual([(await ask(old)).status, (await ask(next)).status], [status, 200], `after ${ms} ms`);
  }
  await setKey(service, key, { secrets, perMinute: 300 });
  assert.equal((await ask(next)).headers.get('x-ratelimit-limit'), '300');
  await setKey(service, key, { secrets, revokedAt: service.clock.wall() });
  const { message } = (await (await ask(next)).json()) as { message: string };
  assert.match(message, /revoked or replaced/);
});

it('a key that ends while a body comes writes nothing, whatever the body says; one that is in force does', async (t) => {
  const service = await serviceFor(t);
  const [pet, order, closing, category] = [
    'POST /v1/pets',
    'POST /v1/store/orders',
    'PATCH /v1/store/orders/7',
    'PUT /v1/categories/7',
  ];
  const [other, now] = [digestOf(makeKey('production')), service.store.now()];
  const revoked = () => ({ revokedAt: 1 });
  const rows: [line: string, body: string, change: (digest: string) => Partial<ApiKey>, status: number][] = [
    [pet, PET, revoked, 401],
    [order, '{"petId":1}', revoked, 401],
    [closing, '{"status":"cancelled"}', revoked, 401],
    [category, '{"name":"Dogs"}', revoked, 401],
    ['PATCH /v1/pets/7', '{"name":"x"}', revoked, 401],
    [pet, PET, () => ({ secrets: [{ digest: other }] }), 401],
    [pet, PET, (digest) => ({ secrets: [{ digest: other }, { digest, endsAt: now }] }), 401],
    [pet, PET, (digest) => ({ secrets: [{ digest: other }, { digest, endsAt: now + 1 }] }), 201],
    [pet, PET, () => ({ perDay: 5 }), 201],
  ];
  for (const [line, body, change, status] of rows) {
    const { text: sent, key } = await service.makeKey();
    const head = `Connection: close\r\nContent-Length: ${body.length}\r\n`;
    const bytes = requestsOf(sent).post(head, body, `${line} HTTP/1.1`);
    const socket = net.connect(service.port, '127.0.0.1');
    socket.write(bytes.slice(0, -1));
    await once(service.service.server, 'request');
    await setKey(service, key, change(digestOf(sent)));
    socket.write(bytes.slice(-1));
    assert.match(await text(socket), new RegExp(`^HTTP/1.1 ${status} `), `${line} ${change}`);
  }
  const { pets, orders, categories } = service.store.read;
  assert.deepEqual([pets.size, orders.size, categories.size], [2, 0, 0]);
});

it('a key that ends in the batch of a write ends before it', async (t) => {
  const service = await serviceFor(t);
  const { store, clock } = service;
  const { text: sent, key } = await service.makeKey();
  const callers = new Callers(store, 'production');
  const caller = callers.identify(`Bearer ${sent}`) as Caller;
  const add = () =>
    write({ store, callers, clock }, { caller } as Call, (tx) =>
      tx.pets.add({ name: 'Rex', categoryId: 3, status: 'available' }),
    );
  await add();
  const ended = setKey(service, key, { secrets: [{ digest: digestOf(makeKey('production')) }] });
  await assert.rejects(add(), { code: 'invalid_api_key' });
  await ended;
  assert.equal(store.read.pets.size, 1);
});
