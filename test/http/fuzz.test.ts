/** Bad input never gets a 500, never hangs, never a reset without a reply: all is answered out of the catalogue. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import { CATALOGUE, type ErrorCode } from '../../src/http/errors.ts';
import { assertError, exchange } from '../raw.ts';
import { startService, type TestService } from '../service.ts';

let service: TestService;
let head: string;
before(async () => {
  service = await startService();
  head = `Host: x\r\nAuthorization: Bearer ${(await service.makeKey()).text}\r\n`;
});
after(() => service.close());

const seed = Number(process.env.FUZZ_SEED ?? Date.now() % 2 ** 31);
const BATCH = 20;

/** Sends each on a connection of its own, a number of them at a time; tells how often each status came back. */
async function sendAll(messages: Buffer[]): Promise<Map<number, number>> {
  const tally = new Map<number, number>();
  const send = async (bytes: Buffer) => {
    // Our side ends, so what is incomplete is known to be: the server need not wait for the rest of it.
    for (const reply of await exchange(service.port, bytes, { end: true })) {
      tally.set(reply.status, (tally.get(reply.status) ?? 0) + 1);
      if (reply.status < 400) continue;
      const { code } = JSON.parse(reply.body);
      assertError(reply, CATALOGUE[code as ErrorCode], code);
      assert.notEqual(reply.status, 500);
    }
  };
  for (let at = 0; at < messages.length; at += BATCH) await Promise.all(messages.slice(at, at + BATCH).map(send));
  return tally;
}

const member = fc.constantFrom('name', 'categoryId', 'status', 'id', 'petId', '__proto__', 'x');
const value = fc.oneof(fc.jsonValue(), fc.constantFrom('available', 'sold', 'delivered', 1, 2 ** 60, 1.5));
const almost = fc.dictionary(member, value).map((members) => JSON.stringify(members));
const damaged = fc.tuple(almost, fc.nat(200), fc.nat(127)).map(([text, at, byte]) => {
  const bytes = Buffer.from(text);
  bytes[at % bytes.length] = byte;
  return bytes;
});
const bodies = fc.oneof(
  fc.constantFrom('{"name":"Rex","categoryId":3}', '{"name":"x"}', '{"petId":1}', '{"status":"cancelled"}'),
  ...[almost, fc.json({ maxDepth: 4 }), fc.string({ unit: 'binary', maxLength: 200 }), damaged],
  fc.uint8Array({ maxLength: 300 }),
);
const WRITES = ['POST /v1/pets', 'POST /v1/store/orders', 'PATCH /v1/store/orders/1', 'PUT /v1/categories/1'];

test(`random bodies (FUZZ_SEED=${seed})`, async () => {
  const cases = fc.sample(fc.tuple(fc.constantFrom(...WRITES), bodies), { numRuns: 5_000, seed });
  const messages = cases.map(([asked, sent]) => {
    const body = Buffer.from(sent as string);
    const own = `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`;
    return Buffer.concat([Buffer.from(`${asked} HTTP/1.1\r\n${head}${own}`), body]);
  });
  const tally = await sendAll(messages);
  for (const status of [200, 201, 400]) assert.ok((tally.get(status) ?? 0) > 10, `${status}: ${[...tally]}`);
});

const text = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 30 }).map(encodeURIComponent),
  fc.stringMatching(/^[!-"$-~]{0,30}$/),
  fc.constantFrom('limit', 'status', 'after', 'sold', '20', '1', '-1', '%', '%ff', '', '9223372036854775807'),
);
const pair = fc.tuple(text, text).map((both) => both.join('='));
const queries = fc.array(pair, { maxLength: 4 }).map((pairs) => pairs.join('&'));
const READS = ['/v1/pets', '/v1/store/orders', '/v1/categories', '/v1/pets/1', '/v1/x', '/', '/healthz'];

test(`random query strings (FUZZ_SEED=${seed})`, async () => {
  const cases = fc.sample(fc.tuple(fc.constantFrom(...READS), queries), { numRuns: 5_000, seed });
  const tally = await sendAll(
    cases.map(([path, query]) => Buffer.from(`GET ${path}?${query} HTTP/1.1\r\n${head}\r\n`)),
  );
  for (const status of [200, 400, 404]) assert.ok((tally.get(status) ?? 0) > 10, `${status}: ${[...tally]}`);
});

test(`random bytes and half requests (FUZZ_SEED=${seed})`, async () => {
  const pet = '{"name":"Rex","categoryId":3}';
  const whole = `POST /v1/pets HTTP/1.1\r\n${head}Content-Type: application/json\r\nContent-Length: 29\r\n\r\n${pet}`;
  const place = fc.nat(whole.length - 1);
  const changed = fc.tuple(place, fc.nat(255)).map(([at, byte]) => {
    const bytes = Buffer.from(whole);
    bytes[at] = byte;
    return bytes;
  });
  const part = fc.tuple(place, place).map((ends) => Buffer.from(whole.slice(Math.min(...ends), Math.max(...ends))));
  const noise = fc.uint8Array({ minLength: 1, maxLength: 400 }).map((bytes) => Buffer.from(bytes));
  await sendAll(fc.sample(fc.oneof(noise, changed, part), { numRuns: 2_000, seed }));
});

test('nothing of all this was an internal error, and the service still serves', async () => {
  assert.deepEqual(service.logged, []);
  const [reply] = await exchange(service.port, `GET /v1/pets HTTP/1.1\r\n${head}\r\n`, { replies: 1 });
  assert.equal(reply.status, 200);
});
