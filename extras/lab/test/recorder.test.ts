/** What the lab records of requests over real sockets: which came before a reply, on which connection, with what body. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import net from 'node:net';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { REX, startLab } from './service.ts';

const SECONDS = 2;

/** One connection, on which requests are written as bytes, and replies are awaited by their number. */
class Line {
  readonly socket: net.Socket;
  #text = '';

  constructor(port: number) {
    this.socket = net.connect(port, '127.0.0.1').setEncoding('latin1');
    this.socket.on('data', (part) => (this.#text += part));
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

const refusing = { kind: 'status', status: 429, operation: 'createPet', seconds: SECONDS };

test('twelve equal POSTs without a key, of which a 429 refuses some: each connection was opened before', async (t) => {
  const { clock, service, port, bytes, must, check } = await startLab(t, { pets: [{ ...REX, status: 'available' }] });
  await must('POST /lab/faults', { ...refusing, skip: 1, times: 3 });
  const open = () => new Promise<number>((resolve) => service.server.getConnections((_, count) => resolve(count)));
  const before = await open();
  const lines = Array.from({ length: 12 }, () => new Line(port));
  await Promise.all(lines.map(({ socket }) => once(socket, 'connect')));
  while ((await open()) < before + lines.length) await turn(); // until all are accepted
  const refused: Line[] = [];
  for (const line of lines) {
    clock.advance(1); // each arrives once the one before it has been answered
    line.socket.write(bytes('POST /v1/pets', REX));
    if ((await line.statuses(1))[0] === 429) refused.push(line);
  }
  assert.equal(refused.length, 3);
  clock.advance(1_000 * SECONDS);
  for (const line of refused) {
    line.socket.write(bytes('POST /v1/pets', REX));
    assert.deepEqual(await line.statuses(2), [429, 201]);
  }
  for (const line of lines) line.socket.destroy();
  const { verdict, why } = await check('retry_after');
  assert.equal(verdict, 'pass', why);
  assert.equal((await check('finished')).verdict, 'pass');
});

test('a pipelined request arrived before the replies in front of it, though it is served after them', async (t) => {
  const { clock, port, bytes, must, check } = await startLab(t, { pets: [{ ...REX, status: 'available' }] });
  await must('POST /lab/faults', { kind: 'unavailable', operation: 'createPet', seconds: SECONDS });
  await must('POST /lab/faults', { kind: 'delay', operation: 'createPet', ms: 20 });
  const line = new Line(port);
  const add = (name: string) => bytes('POST /v1/pets', { ...REX, name }, `Idempotency-Key: ${name.toLowerCase()}\r\n`);
  line.socket.write(['Ann', 'Bob', 'Cid', 'Dan'].map(add).join(''));
  const moves = setInterval(() => clock.advance(60), 5);
  assert.deepEqual(await line.statuses(4), [503, 201, 201, 201]);
  clearInterval(moves);
  clock.advance(1_000 * SECONDS);
  line.socket.write(add('Ann'));
  assert.equal((await line.statuses(5))[4], 201);
  const { verdict, why } = await check('retry_after');
  assert.equal(verdict, 'pass', why);
  const [, , cid, dan] = (await must('GET /lab/requests')).json.reverse().map(({ ms }: { ms: number }) => ms);
  assert.ok(cid > 0 && dan > 0, 'measured from their arrival');
  line.socket.destroy();
});

test('a connection that the service ends for an Upgrade does not count against its client', async (t) => {
  const { port, key, check, must } = await startLab(t);
  const sendTwelve = async (more: Record<string, string>) => {
    for (let n = 0; n < 12; n++) {
      const headers = { authorization: `Bearer ${key}`, ...more };
      const sent = request({ port, path: `/v1/pets?limit=${n + 1}`, headers, agent: false }).end();
      const [reply] = await once(sent, 'response');
      await once(reply.resume(), 'end');
    }
  };
  await sendTwelve({ connection: 'Upgrade, HTTP2-Settings', upgrade: 'h2c', 'http2-settings': 'AAEAAEAAAAIAAAAB' });
  assert.equal((await check('reuse')).verdict, 'unseen', JSON.stringify(await check('reuse')));
  await must('POST /lab/reset', { only: 'key' });
  await sendTwelve({ connection: 'close' });
  assert.equal((await check('reuse')).verdict, 'fail');
  await must('POST /lab/reset', { only: 'key' });
  await sendTwelve({ connection: 'Upgrade, close', upgrade: 'h2c' });
  assert.equal((await check('reuse')).verdict, 'fail');
});

test('the body of a POST that the limits refuse is read, so that its retry is recognised', async (t) => {
  const { clock, ask, must, check } = await startLab(t, { perMinute: 1, perDay: 1_000 });
  const add = (name: string) => ask('POST /v1/pets', { ...REX, name });
  await must('GET /v1/pets');
  await must('POST /lab/faults', { kind: 'drop_before' }); // which no refused request uses up
  assert.deepEqual([(await add('A')).status, (await add('B')).status], [429, 429]);
  await must('DELETE /lab/faults');
  for (const name of ['A', 'B']) {
    clock.advance(61_000);
    assert.equal((await add(name)).status, 201);
  }
  clock.advance(30_000);
  assert.deepEqual([(await check('finished')).verdict, (await check('finished')).count], ['pass', 0]);
  clock.advance(31_000);
  assert.deepEqual([(await add('C')).status, (await add('D')).status], [201, 429]);
  clock.advance(61_000);
  assert.equal((await add('E')).status, 201);
  clock.advance(30_000);
  assert.equal((await check('finished')).count, 1, 'D never came again');
});
