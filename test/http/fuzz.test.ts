/** Bad input never gets a 500, never hangs, never a reset without a reply: all is answered out of the catalogue. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import { Pool } from 'undici';
import { CATALOGUE } from '../../src/http/errors.ts';
import { assertCommon, exchange, type RawReply } from '../raw.ts';
import { startService, type TestService } from '../service.ts';

let service: TestService;
let pool: Pool;
let authorization: string;
before(async () => {
  service = await startService();
  pool = new Pool(service.url, { connections: 8 });
  authorization = `Bearer ${(await service.makeKey()).text}`;
});
after(async () => {
  await pool.close();
  await service.close();
});

const seed = Number(process.env.FUZZ_SEED ?? Date.now() % 2 ** 31);
const REFUSALS = new Map<string, number>(Object.entries(CATALOGUE));
const BATCH = 100;

function assertAnswer({ status, headers, body }: RawReply): void {
  assertCommon(headers);
  if (status < 400) return;
  const { code, status: told } = JSON.parse(body);
  assert.equal(REFUSALS.get(code), status, body);
  assert.equal(told, status);
  assert.notEqual(status, 500);
}

/** Values out of an arbitrary, a batch of requests under way at a time. */
async function each<T>(values: T[], ask: (value: T) => Promise<void>): Promise<void> {
  for (let at = 0; at < values.length; at += BATCH) await Promise.all(values.slice(at, at + BATCH).map(ask));
}

async function request(
  method: 'GET' | 'POST' | 'PUT' | 'PATCH',
  path: string,
  body?: string | Buffer,
): Promise<number> {
  const headers: Record<string, string> = { authorization };
  if (body !== undefined) headers['content-type'] = 'application/json';
  const reply = await pool.request({ method, path, headers, body });
  const told = new Map(Object.entries(reply.headers).map(([name, value]) => [name, String(value)]));
  assertAnswer({ status: reply.statusCode, headers: told, body: await reply.body.text() });
  return reply.statusCode;
}

const member = fc.constantFrom('name', 'categoryId', 'status', 'id', 'petId', '__proto__', 'x');
const almost = fc.dictionary(
  member,
  fc.oneof(fc.jsonValue(), fc.constantFrom('available', 'sold', 'delivered', 1, 2 ** 60, 1.5)),
);
const bodies = fc.oneof(
  fc.constantFrom('{"name":"Rex","categoryId":3}', '{"name":"x"}', '{"petId":1}', '{"status":"cancelled"}'),
  almost.map((value) => JSON.stringify(value)),
  fc.json({ maxDepth: 4 }),
  fc.string({ unit: 'binary', maxLength: 200 }),
  fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
  fc.tuple(almost, fc.nat(200), fc.nat(127)).map(([value, at, byte]) => {
    const bytes = Buffer.from(JSON.stringify(value));
    bytes[at % bytes.length] = byte;
    return bytes;
  }),
);

test(`10,000 random bodies (FUZZ_SEED=${seed})`, async () => {
  const targets = [
    ['POST', '/v1/pets'],
    ['POST', '/v1/store/orders'],
    ['PATCH', '/v1/store/orders/1'],
    ['PUT', '/v1/categories/1'],
  ] as const;
  const tally = new Map<number, number>();
  const cases = fc.sample(fc.tuple(fc.constantFrom(...targets), bodies), { numRuns: 10_000, seed });
  await each(cases, async ([[method, path], body]) => {
    const status = await request(method, path, body);
    tally.set(status, (tally.get(status) ?? 0) + 1);
  });
  for (const status of [200, 201, 400])
    assert.ok((tally.get(status) ?? 0) > 10, `${status} is among ${[...tally.keys()]}`);
});

const text = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 30 }).map(encodeURIComponent),
  fc.stringMatching(/^[!-"$-~]{0,30}$/),
  fc.constantFrom('limit', 'status', 'after', 'sold', '20', '1', '-1', '%', '%ff', '', '9223372036854775807'),
);
const queries = fc
  .array(fc.tuple(text, text), { maxLength: 4 })
  .map((pairs) => pairs.map((pair) => pair.join('=')).join('&'));

test(`10,000 random query strings (FUZZ_SEED=${seed})`, async () => {
  const paths = fc.constantFrom(
    '/v1/pets',
    '/v1/store/orders',
    '/v1/categories',
    '/v1/pets/1',
    '/v1/x',
    '/',
    '/healthz',
  );
  const cases = fc.sample(fc.tuple(paths, queries), { numRuns: 10_000, seed });
  await each(cases, async ([path, query]) => void (await request('GET', `${path}?${query}`)));
});

test(`random bytes and half requests (FUZZ_SEED=${seed})`, async () => {
  const whole = `POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\nContent-Type: application/json\r\nContent-Length: 29\r\n\r\n{"name":"Rex","categoryId":3}`;
  const wires = fc.oneof(
    fc.uint8Array({ minLength: 1, maxLength: 400 }).map((bytes) => Buffer.from(bytes)),
    fc.tuple(fc.nat(whole.length - 1), fc.nat(255)).map(([at, byte]) => {
      const bytes = Buffer.from(whole);
      bytes[at] = byte;
      return bytes;
    }),
    fc
      .tuple(fc.nat(whole.length), fc.nat(whole.length))
      .map(([from, to]) => Buffer.from(whole.slice(Math.min(from, to), Math.max(from, to)))),
  );
  await each(fc.sample(wires, { numRuns: 2_000, seed }), async (bytes) => {
    // Our side ends, so what is incomplete is known to be: the server need not wait for the rest of it.
    for (const reply of await exchange(service.port, bytes, { end: true })) assertAnswer(reply);
  });
});

test('nothing of all this was an internal error, and the service still serves', async () => {
  assert.deepEqual(service.logged, []);
  assert.equal(await request('GET', '/v1/pets'), 200);
});
