/** Requests that are sent before an earlier one is answered, over real sockets: none of them is a try of that one. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import type { Decision } from '../../src/access/limits.ts';
import { REX, startLab } from './service.ts';

const TOLD_SECONDS = 2;

/** One connection, on which requests are written as bytes, and replies are awaited by their number. */
class Line {
  readonly socket: net.Socket;
  readonly #key: string;
  #text = '';

  constructor(port: number, key: string) {
    this.socket = net.connect(port, '127.0.0.1').setEncoding('latin1');
    this.socket.on('data', (part) => (this.#text += part));
    this.#key = key;
  }

  bytesOf(line: string, body: object, headers = ''): string {
    const text = JSON.stringify(body);
    const type = `Content-Type: application/json\r\nContent-Length: ${text.length}`;
    return `${line} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${this.#key}\r\n${type}\r\n${headers}\r\n${text}`;
  }

  /** The statuses of all replies so far, once there are so many. */
  async statuses(count: number): Promise<number[]> {
    for (;;) {
      const found = [...this.#text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status));
      if (found.length >= count && /[\]}]$/.test(this.#text)) return found;
      await once(this.socket, 'data');
    }
  }
}

const refusing = { kind: 'status', status: 429, operation: 'createPet', seconds: TOLD_SECONDS };

test('twelve equal POSTs without a key, of which a 429 refuses some: each connection was opened before', async (t) => {
  const { clock, app, port, key, must, check } = await startLab(t, { pets: [{ ...REX, status: 'available' }] });
  await must('POST /lab/faults', { ...refusing, skip: 1, times: 3 });
  const before = app.connections.open.size;
  const lines = Array.from({ length: 12 }, () => new Line(port, key));
  await Promise.all(lines.map(({ socket }) => once(socket, 'connect')));
  while (app.connections.open.size < before + lines.length) await turn(); // until all are accepted
  const refused: Line[] = [];
  for (const line of lines) {
    clock.advance(1); // each arrives once the one before it has been answered
    line.socket.write(line.bytesOf('POST /v1/pets', REX));
    if ((await line.statuses(1))[0] === 429) refused.push(line);
  }
  assert.equal(refused.length, 3);
  clock.advance(1_000 * TOLD_SECONDS);
  for (const line of refused) {
    line.socket.write(line.bytesOf('POST /v1/pets', REX));
    assert.deepEqual(await line.statuses(2), [429, 201]);
  }
  for (const line of lines) line.socket.destroy();
  const { verdict, why } = await check('retry_after');
  assert.equal(verdict, 'pass', why);
  assert.equal((await check('finished')).verdict, 'pass');
});

test('who comes again at once, on a connection that is opened for that, was not on its way', async (t) => {
  const { clock, port, key, must, check } = await startLab(t, { pets: [{ ...REX, status: 'available' }] });
  await must('POST /lab/faults', refusing);
  for (const status of [429, 201]) {
    const line = new Line(port, key);
    line.socket.write(line.bytesOf('POST /v1/pets', REX));
    assert.deepEqual(await line.statuses(1), [status]);
    line.socket.destroy();
    clock.advance(5);
  }
  assert.equal((await check('retry_after')).verdict, 'fail');
});

test('what is pipelined came before the replies in front of it, though it is begun after them', async (t) => {
  const { clock, port, key, must, check } = await startLab(t, { pets: [{ ...REX, status: 'available' }] });
  await must('POST /lab/faults', { kind: 'unavailable', operation: 'createPet', seconds: TOLD_SECONDS });
  await must('POST /lab/faults', { kind: 'delay', operation: 'createPet', ms: 20 });
  const line = new Line(port, key);
  const add = (name: string) =>
    line.bytesOf('POST /v1/pets', { ...REX, name }, `Idempotency-Key: ${name.toLowerCase()}\r\n`);
  line.socket.write(['Ann', 'Bob', 'Cid', 'Dan'].map(add).join(''));
  const moves = setInterval(() => clock.advance(10), 5);
  assert.deepEqual(await line.statuses(4), [503, 201, 201, 201]);
  clearInterval(moves);
  clock.advance(1_000 * TOLD_SECONDS);
  line.socket.write(add('Ann'));
  assert.equal((await line.statuses(5))[4], 201);
  const { verdict, why } = await check('retry_after');
  assert.equal(verdict, 'pass', why);
  const [, , cid, dan] = (await must('GET /lab/requests')).json.reverse().map(({ ms }: { ms: number }) => ms);
  assert.ok(cid > 0 && dan > 0, 'its time counts from when it came');
  line.socket.destroy();
});

test('on a connection that pipelines, what comes after there was time to read the refusal is early', async (t) => {
  const { clock, port, key, must, check } = await startLab(t, { pets: [{ ...REX, status: 'available' }] });
  await must('POST /lab/faults', { kind: 'unavailable', operation: 'createPet', seconds: TOLD_SECONDS });
  const line = new Line(port, key);
  const add = (name: string) => line.bytesOf('POST /v1/pets', { ...REX, name });
  line.socket.write(add('Ann') + add('Bob'));
  await line.statuses(2);
  clock.advance(50);
  line.socket.write(add('Cid'));
  await line.statuses(3);
  assert.equal((await check('retry_after')).verdict, 'unseen', 'it may have been sent before');
  clock.advance(100);
  line.socket.write(add('Dan'));
  await line.statuses(4);
  assert.equal((await check('retry_after')).verdict, 'fail');
  line.socket.destroy();
});

test('of requests that are decided together the one is told that began a ban', async (t) => {
  const { engine, must, ask, check } = await startLab(t, { perMinute: 4, perDay: 1_000, banAfter: 2 });
  const { limiter } = engine;
  const take = limiter.take.bind(limiter);
  const waiting: (() => void)[] = [];
  // As a database does, which answers for all that came while it was asked before.
  limiter.take = (limited) =>
    new Promise((resolve) => waiting.push(() => resolve(structuredClone(take(limited) as Decision))));
  const asked = Array.from({ length: 7 }, () => ask('GET /v1/pets'));
  while (waiting.length < 7) await turn();
  for (const decide of waiting) decide();
  limiter.take = take;
  const replies = await Promise.all(asked);
  const codes = replies.map(({ json }) => json.code ?? 'ok').sort();
  assert.deepEqual(codes, ['key_banned', 'key_banned', 'ok', 'ok', 'ok', 'ok', 'rate_limited']);
  const requests = (await must('GET /lab/requests')).json; // the newest first: two banned, the second brought the ban
  assert.deepEqual((await check('ban')).requestIds, [requests[1].requestId]);
});
