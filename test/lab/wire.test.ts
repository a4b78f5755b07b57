/** What goes wrong on the wire when a fault is armed, byte by byte, and that each goes wrong exactly once. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import net from 'node:net';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { REX, startLab } from './service.ts';

/** Sends bytes on one connection and gives back what came until it ended, and how long that took. */
function talk(port: number, sent: string, replies = Number.POSITIVE_INFINITY) {
  return new Promise<{ text: string; ms: number; pieces: number }>((resolve, reject) => {
    const began = performance.now();
    const socket = net.connect(port, '127.0.0.1', () => socket.write(sent));
    let [text, pieces] = ['', 0];
    socket.setEncoding('latin1').on('data', (part) => {
      text += part;
      pieces++;
      if (text.split('HTTP/1.1 ').length - 1 >= replies && /\}$|\]$/.test(text)) socket.end();
    });
    socket.on('error', reject);
    socket.on('close', () => resolve({ text, pieces, ms: performance.now() - began }));
  });
}

async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) await wait(20); // a key may ask the lab 600 times
}

/** A service with one animal, on which these faults are armed. */
const start = (t: Parameters<typeof startLab>[0], ...faults: object[]) => startAll(t, 100, ...faults);

async function startAll(t: Parameters<typeof startLab>[0], perMinute = 1_000, ...faults: object[]) {
  const service = await startLab(t, { pets: [{ ...REX, status: 'available' }], perMinute, perDay: 1_000 });
  const { engine, key, must, port } = service;
  for (const body of faults) await must('POST /lab/faults', body);
  return {
    ...service,
    talk: (sent: string, replies?: number) => talk(port, sent, replies),
    pets: () => engine.store.read.counts().pets,
    /** As bytes. */
    say(line: string, body?: object, headers = '') {
      const text = body === undefined ? '' : JSON.stringify(body);
      const type = body === undefined ? '' : `Content-Type: application/json\r\nContent-Length: ${text.length}\r\n`;
      return `${line} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n${type}${headers}\r\n${text}`;
    },
    armed: async () => (await must('GET /lab/faults')).json.length,
    /** What the record says, the newest first: of each request its status and the fault that it met. */
    record: async (): Promise<unknown[][]> =>
      (await must('GET /lab/requests')).json.map((one: Record<string, unknown>) => [one.status, one.fault]),
  };
}

test('unavailable: 503 with Retry-After and the limits, nothing is done; who is refused uses up none', async (t) => {
  const { ask, must, pets, record } = await start(t, { kind: 'unavailable', seconds: 7 });
  assert.equal((await ask('GET /v1/pets', undefined, { key: '' })).status, 401);
  assert.equal((await ask('GET /v1/nothing')).status, 404);
  assert.equal((await ask('POST /v1/pets', '{')).status, 400);
  const { status, headers, json } = await ask('POST /v1/pets', REX);
  assert.deepEqual([status, json.code, headers.get('retry-after')], [503, 'unavailable', '7']);
  assert.equal(headers.get('x-ratelimit-remaining'), '97');
  assert.match(headers.get('ratelimit')!, /"minute";r=97;/);
  assert.equal(pets(), 1);
  assert.deepEqual((await record())[0], [503, 'unavailable']);
  await must('POST /v1/pets', REX);
});

test('drop_after: it is done and durable, and the same Idempotency-Key gets the reply that was lost', async (t) => {
  const { say, talk, must, pets, record } = await start(t, { kind: 'drop_after' });
  assert.equal((await talk(say('POST /v1/pets', REX, 'Idempotency-Key: a\r\n'))).text, '');
  assert.equal(pets(), 2);
  assert.deepEqual(await record(), [[null, 'drop_after']]);
  const again = await must('POST /v1/pets', REX, { headers: { 'idempotency-key': 'a' } });
  assert.deepEqual([again.headers.get('idempotent-replayed'), again.json.id, pets()], ['true', 2, 2]);
  await must('POST /lab/faults', { kind: 'drop_after' });
  assert.equal((await talk(say('POST /v1/pets', { name: '' }))).text, '', 'a refusal is lost as well');
});

test('truncate: the whole head, half of the body, then the end', async (t) => {
  const { say, talk, ask, record } = await start(t, { kind: 'truncate', times: 2 });
  const [head, body] = (await talk(say('GET /v1/pets'))).text.split('\r\n\r\n');
  const whole = '[{"id":1,"name":"Rex","categoryId":1,"status":"available"}]';
  assert.match(head, /^HTTP\/1\.1 200 OK\r\n/);
  assert.ok(head.includes(`\r\nContent-Length: ${whole.length}\r\n`) && head.includes('X-RateLimit-Remaining: 99'));
  assert.equal(body, whole.slice(0, whole.length / 2));
  await assert.rejects(ask('GET /v1/pets'));
  assert.deepEqual(await record(), Array(2).fill([200, 'truncate']));
});

test('truncate: a reply without a body is whole', async (t) => {
  const { say, talk, must, record } = await start(t, { kind: 'truncate', skip: 1, times: 2 });
  const tag = (await must('GET /v1/pets')).headers.get('etag');
  assert.match((await talk(say('HEAD /v1/pets'))).text, /^HTTP\/1\.1 200 /);
  assert.match((await talk(say('GET /v1/pets', undefined, `If-None-Match: ${tag}\r\n`))).text, /^HTTP\/1\.1 304 /);
  assert.deepEqual(await record(), [
    [304, 'truncate'],
    [200, 'truncate'],
    [200, null],
  ]);
});

test('drip: the whole reply, a little at a time; then the connection goes on', async (t) => {
  const { say, talk, record } = await start(t, { kind: 'drip', ms: 300 });
  // Each look at the clock takes 10 ms: whatever a busy machine adds to its timers, it comes in a dozen pieces and more.
  let now = performance.now();
  t.mock.method(performance, 'now', () => (now += 10));
  const { text, ms, pieces } = await talk(say('GET /v1/pets').repeat(2), 2);
  assert.ok(ms >= 290, `it took ${ms} ms`);
  assert.ok(pieces > 2, `it came in ${pieces} pieces`);
  assert.match(text, /"status":"available"\}\]HTTP\/1\.1 200 OK\r\n.*"status":"available"\}\]$/s);
  assert.deepEqual((await record()).flat(), [200, null, 200, 'drip']);
});

test('drip: a timer that is late waits for no time, and never for less than none, of which Node warns on stderr', async (t) => {
  const timers = t.mock.method(globalThis, 'setTimeout');
  const { say, talk } = await start(t, { kind: 'drip', ms: 5, times: 20 }); // a dozen bytes in each millisecond
  await talk(say('GET /v1/pets').repeat(20), 20);
  const shortest = Math.min(...timers.mock.calls.map((call) => Number(call.arguments[1] ?? 0)));
  assert.ok(shortest >= 0, `a wait of ${shortest} ms`);
});

test('a Link is known from the head on: the next page may be asked for while the body still drips', async (t) => {
  const { port, key, must, check } = await start(t, { kind: 'drip', operation: 'listPets', ms: 400 });
  await must('POST /v1/pets', REX);
  const ask = (path: string) => request({ port, path, headers: { authorization: `Bearer ${key}` } }).end();
  const [first] = await once(ask('/v1/pets?limit=1'), 'response');
  const next = /<([^>]+)>/.exec(first.headers.link)![1];
  const [second] = await once(ask(next), 'response');
  for (const reply of [second, first]) await once(reply.resume(), 'end');
  await until(async () => (await must('GET /lab/requests')).json.length === 3);
  assert.deepEqual([(await check('paging')).verdict, (await check('paging')).count], ['pass', 0]);
});

test('delay: it is done at once, and told late', async (t) => {
  const { must, pets } = await start(t, { kind: 'delay', ms: 200 });
  const began = performance.now();
  const reply = must('POST /v1/pets', REX).then(() => performance.now());
  await until(() => pets() === 2);
  const done = performance.now();
  const told = await reply;
  assert.ok(told - began >= 195 && done < told, `done after ${done - began} ms, told after ${told - began}`);
});

test('replies to what was asked before on the connection still arrive; what was asked behind is not answered', async (t) => {
  for (const kind of ['drop_before', 'drop_after', 'truncate']) {
    const { say, talk, pets, record } = await start(t, { kind, operation: 'createPet' });
    const list = say('GET /v1/pets');
    const first = say('PUT /v1/categories/7', { name: 'fish' }); // its reply has to wait for the disk
    const { text } = await talk(list + first + say('POST /v1/pets', REX) + list);
    const told = kind === 'truncate' ? 201 : null;
    const statuses = [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status));
    assert.deepEqual(statuses, told === null ? [200, 201] : [200, 201, told], kind);
    assert.match(text, /\{"id":7,"name":"fish"\}/);
    assert.equal(pets(), kind === 'drop_before' ? 1 : 2);
    await until(async () => (await record()).length === 3);
    const recorded = [
      [told, kind],
      [201, null],
      [200, null],
    ]; // what stood behind was never begun
    // biome-ignore format: pairs
    assert.deepEqual(await record(), recorded);
  }
});

test('what is asked behind a drip that ends its connection is not done', async (t) => {
  const { pets, say, talk } = await start(t, { kind: 'drip', ms: 50 });
  const { text } = await talk(say('GET /v1/pets', undefined, 'Expect: 100-continue\r\n') + say('POST /v1/pets', REX));
  assert.match(text, /^HTTP\/1\.1 200 [\s\S]*\r\nConnection: close\r\n[\s\S]*\]$/);
  assert.equal(pets(), 1);
});

test('in order of arrival the first fault that fits is used up, once, and by none that it is not for', async (t) => {
  const { say, talk, armed } = await start(
    t,
    { kind: 'unavailable', operation: 'listCategories', seconds: 8 },
    { kind: 'unavailable', times: 2, skip: 1 },
    { kind: 'unavailable', operation: 'listPets', seconds: 5 },
  );
  const [pets, categories] = [say('GET /v1/pets'), say('GET /v1/categories')];
  const { text } = await talk(pets + pets + categories + categories + pets + pets, 6);
  const found = [...text.matchAll(/HTTP\/1\.1 (\d+)|Retry-After: (\d+)/g)].map(([, status, wait]) => wait ?? status);
  // The second lets one request pass, which meets the third.
  assert.deepEqual(found, ['503', '5', '503', '1', '503', '8', '503', '1', '200', '200']);
  assert.equal(await armed(), 0);
});

test('a client that is gone before its broken reply does no harm', async (t) => {
  for (const kind of ['drop_after', 'truncate', 'drip', 'delay']) {
    const fault = { kind, operation: 'createPet', ...(kind === 'drip' && { ms: 50 }) };
    const { say, port, pets, must, record } = await start(t, fault);
    const socket = net.connect(port, '127.0.0.1');
    socket.write(say('POST /v1/pets', REX), () => socket.destroy());
    await until(() => pets() === 2);
    await until(async () => (await record()).length === 1);
    await must('GET /v1/pets');
  }
});

test('HEAD meets faults as GET does', async (t) => {
  for (const kind of ['truncate', 'drip', 'drop_after']) {
    const { say, talk } = await start(t, { kind, ...(kind === 'drip' && { ms: 0 }) });
    const { text } = await talk(say('HEAD /v1/pets', undefined, 'Connection: close\r\n'));
    assert.match(text, kind === 'drop_after' ? /^$/ : /^HTTP\/1\.1 200 OK\r\n.*\r\n\r\n$/s, kind);
  }
});

test('status: that one, with Retry-After only where it was asked for; nothing is done', async (t) => {
  const { say, talk, must, pets, record } = await start(t);
  const codes = {
    429: 'rate_limited',
    500: 'internal_error',
    502: 'unavailable',
    503: 'unavailable',
    504: 'unavailable',
  };
  for (const [status, code] of Object.entries(codes)) {
    for (const seconds of [undefined, 9]) {
      await must('POST /lab/faults', { kind: 'status', status: Number(status), seconds });
      const { text } = await talk(say('POST /v1/pets', REX), 1);
      assert.equal(text.slice(0, 12), `HTTP/1.1 ${status}`);
      const { message, ...told } = JSON.parse(text.slice(text.indexOf('\r\n\r\n')));
      assert.deepEqual([told, message.length > 20], [{ code, status: Number(status) }, true]);
      assert.equal(/Retry-After: (.*)\r/.exec(text)?.[1], seconds === undefined ? undefined : '9');
      assert.equal(pets(), 1);
    }
  }
  assert.deepEqual((await record())[0], [504, 'status']);
});

test('unavailable as a date: the first whole second that is late enough', async (t) => {
  const fault = { kind: 'unavailable', seconds: 2, as: 'date', times: 2 };
  const { clock, say, talk, must, check } = await start(t, fault);
  const told = async () => /Retry-After: (.*)\r/.exec((await talk(say('GET /v1/pets'), 1)).text)?.[1];
  assert.equal(await told(), new Date(clock.wall() + 2_000).toUTCString());
  clock.advance(2_000.5);
  assert.equal(await told(), new Date(clock.wall() + 2_999.5).toUTCString());
  clock.advance(2_990);
  await must('GET /v1/pets');
  const { verdict, why } = await check('retry_after');
  assert.deepEqual([verdict, why.slice(0, 6)], ['fail', '1 of 2'], 'the date is what it is told to wait for');
});

test('hang: no answer, and then the end; who is gone before is gone', async (t) => {
  const { say, talk, pets, port, record, must } = await start(
    t,
    { kind: 'hang', ms: 300 },
    { kind: 'hang', ms: 120_000 },
  );
  const { text, ms } = await talk(say('POST /v1/pets', REX));
  assert.deepEqual([text, pets(), ms >= 290], ['', 1, true], `${ms} ms`);
  const socket = net.connect(port, '127.0.0.1');
  socket.write(say('POST /v1/pets', REX));
  await until(async () => (await must('GET /lab/faults')).json.length === 0);
  socket.destroy();
  await until(async () => (await record()).length === 2);
  assert.deepEqual(await record(), [[null, 'hang'], [null, 'hang']]); // biome-ignore format: pairs
});

test('with rate so many are met, the same ones for the same seed, until times are used up', async (t) => {
  const { ask, must } = await start(t);
  const met = async (fault: object) => {
    await must('POST /lab/faults', { kind: 'status', status: 500, ...fault });
    const got: number[] = [];
    for (let n = 0; n < 60; n++) got.push((await ask('GET /v1/pets')).status);
    await must('POST /lab/reset', { only: 'key' });
    return got.map((status) => (status === 500 ? 'x' : '.')).join('');
  };
  const many = { times: 1_000, rate: 0.3 };
  const first = await met({ ...many, seed: 7 });
  assert.equal(await met({ ...many, seed: 7 }), first);
  assert.notEqual(await met({ ...many, seed: 8 }), first);
  const count = first.split('x').length - 1;
  assert.ok(count >= 8 && count <= 30, first);
  assert.equal((await met({ rate: 1, times: 3 })).lastIndexOf('x'), 2);
  assert.equal((await met({ ...many, seed: 7, times: 2 })).split('x').length - 1, 2);
});

test('of 300 requests side by side each fault meets exactly one', async (t) => {
  const { ask, must, record } = await startAll(t);
  for (let n = 0; n < 16; n++) await must('POST /lab/faults', { kind: 'status', status: 500, skip: 15 * n });
  const all = await Promise.all(Array.from({ length: 300 }, () => ask('GET /v1/pets')));
  assert.equal(all.filter(({ status }) => status === 500).length, 16);
  assert.equal((await record()).filter(([, fault]) => fault === 'status').length <= 16, true);
  assert.deepEqual((await must('GET /lab/faults')).json, []);
});

test('a connection that the service ends for an Upgrade is no fault of its client; one that the client ends is', async (t) => {
  const { port, key, check, must } = await startLab(t);
  const askTwelveTimes = async (more: Record<string, string>) => {
    for (let n = 0; n < 12; n++) {
      const headers = { authorization: `Bearer ${key}`, ...more };
      const [reply] = await once(
        request({ port, path: `/v1/pets?limit=${n + 1}`, headers, agent: false }).end(),
        'response',
      );
      await once(reply.resume(), 'end');
    }
  };
  await askTwelveTimes({ connection: 'Upgrade, HTTP2-Settings', upgrade: 'h2c', 'http2-settings': 'AAEAAEAAAAIAAAAB' });
  assert.equal((await check('reuse')).verdict, 'unseen', JSON.stringify(await check('reuse')));
  await must('POST /lab/reset', { only: 'key' });
  await askTwelveTimes({ connection: 'close' });
  assert.equal((await check('reuse')).verdict, 'fail');
  await must('POST /lab/reset', { only: 'key' });
  await askTwelveTimes({ connection: 'Upgrade, close', upgrade: 'h2c' });
  assert.equal((await check('reuse')).verdict, 'fail');
});

test('a POST that the limits refuse is known again by its body', async (t) => {
  const { clock, ask, must, check } = await startAll(t, 1);
  const add = (name: string) => ask('POST /v1/pets', { ...REX, name });
  await must('GET /v1/pets');
  assert.deepEqual([(await add('A')).status, (await add('B')).status], [429, 429]);
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

test('a POST that waits for leave to send its body is refused without it, and is not judged', async (t) => {
  const { clock, say, talk, must, check } = await startAll(t, 1);
  await must('GET /v1/pets');
  const asks = say('POST /v1/pets', REX, 'Expect: 100-continue\r\n').split('\r\n\r\n')[0];
  assert.match((await talk(`${asks}\r\n\r\n`, 1)).text, /^HTTP\/1\.1 429 /);
  clock.advance(91_000);
  assert.equal((await check('finished')).verdict, 'unseen');
});

test('a POST whose body breaks off before its refusal does no harm, and is not judged', async (t) => {
  const { clock, port, say, must, check, record } = await startAll(t, 1);
  await must('GET /v1/pets');
  const socket = net.connect(port, '127.0.0.1');
  socket.write(say('POST /v1/pets', REX).slice(0, -5), () => socket.end());
  await once(socket.resume(), 'close');
  await until(async () => (await record()).length === 2);
  clock.advance(91_000);
  assert.equal((await check('finished')).verdict, 'unseen');
});
