/** Bad input never gets a 500, never hangs, never a reset without a reply: all is answered out of the catalogue. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import fc from 'fast-check';
import { CATALOGUE, type ErrorCode } from '../../src/http/errors.ts';
import { assertError, exchange, requestsOf } from '../raw.ts';
import { startService } from '../service.ts';

const service = await startService();
after(() => service.close());
const { get, post, addPet } = requestsOf((await service.makeKey()).text);

const seed = Number(process.env.FUZZ_SEED ?? Date.now() % 2 ** 31);
const AT_ONCE = 20;

/** Sends each on a connection of its own, a number of them at a time; tells how often each status came back. */
async function sendAll(messages: Buffer[]): Promise<number[]> {
  const tally: number[] = [];
  const send = async (bytes: Buffer) => {
    // Our side ends, so what is incomplete is known to be: the server need not wait for the rest of it.
    for (const reply of await exchange(service.port, bytes, { end: true })) {
      tally[reply.status] = (tally[reply.status] ?? 0) + 1;
      if (reply.status < 400) continue;
      const code: ErrorCode = JSON.parse(reply.body).code;
      assertError(reply, CATALOGUE[code], code, reply.headers.has('ratelimit')); // pages have none
    }
  };
  for (let at = 0; at < messages.length; at += AT_ONCE) await Promise.all(messages.slice(at, at + AT_ONCE).map(send));
  assert.deepEqual([tally[500], service.logged], [undefined, []], 'no internal error');
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
const writes = fc.tuple(fc.constantFrom(...WRITES), bodies).map(([asked, sent]) => {
  const body = Buffer.from(sent as string);
  return post(`Content-Length: ${body.length}\r\n`, body.toString('latin1'), `${asked} HTTP/1.1`);
});

const text = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 30 }).map(encodeURIComponent),
  fc.stringMatching(/^[!-"$-~]{0,30}$/),
  fc.constantFrom('limit', 'status', 'after', 'sold', '20', '1', '-1', '%', '%ff', '', '9223372036854775807'),
);
const pair = fc.tuple(text, text).map((both) => both.join('='));
const queries = fc.array(pair, { maxLength: 4 }).map((pairs) => pairs.join('&'));
const READS = ['/v1/pets', '/v1/store/orders', '/v1/categories', '/v1/pets/1', '/v1/x', '/', '/healthz'];
const reads = fc.tuple(fc.constantFrom(...READS), queries).map(([path, query]) => get('', `${path}?${query}`));

/** Few random bodies add an animal. */
const MIXED = [
  { arbitrary: writes, weight: 12 },
  { arbitrary: reads, weight: 12 },
  { arbitrary: fc.constant(addPet()), weight: 1 },
];

test(`random bodies and query strings: what is wrong within a request does not end its connection (FUZZ_SEED=${seed})`, async () => {
  const [COUNT, PER_CONNECTION] = [2_400, 16];
  const requests = fc.sample(fc.oneof(...MIXED), { numRuns: COUNT, seed });
  const messages = Array.from({ length: COUNT / PER_CONNECTION }, (_, i) =>
    Buffer.from(requests.slice(i * PER_CONNECTION, (i + 1) * PER_CONNECTION).join(''), 'latin1'),
  );
  const tally = await sendAll(messages);
  const replies = tally.reduce((sum, times) => sum + times);
  assert.equal(replies, COUNT, 'a reply to each');
  for (const status of [200, 201, 400, 404]) assert.ok(tally[status] > 10, `${status}: ${tally[status]} times`);
});

test(`random bytes and half requests (FUZZ_SEED=${seed})`, async () => {
  const whole = addPet();
  const place = fc.nat(whole.length - 1);
  const changed = fc.tuple(place, fc.nat(255)).map(([at, byte]) => {
    const bytes = Buffer.from(whole);
    bytes[at] = byte;
    return bytes;
  });
  const part = fc.tuple(place, place).map((ends) => Buffer.from(whole.slice(Math.min(...ends), Math.max(...ends))));
  const noise = fc.uint8Array({ minLength: 1, maxLength: 400 }).map((bytes) => Buffer.from(bytes));
  await sendAll(fc.sample(fc.oneof(noise, changed, part), { numRuns: 600, seed }));
  assert.equal((await exchange(service.port, get(), { replies: 1 }))[0].status, 200, 'and it still serves');
});
