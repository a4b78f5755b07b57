/** What goes wrong on the wire when a fault is armed, and that each goes wrong exactly once. */
import assert from 'node:assert/strict';
import net from 'node:net';
import { type TestContext, test } from 'node:test';
import { REX, startLab, until } from './service.ts';

/** Sends bytes on one connection. Returns what comes until it ends, or until so many replies are there. */
function talk(port: number, sent: string, replies = Number.POSITIVE_INFINITY) {
  return new Promise<{ text: string; ms: number }>((resolve, reject) => {
    const began = performance.now();
    const socket = net.connect(port, '127.0.0.1', () => socket.write(sent));
    let text = '';
    socket.setEncoding('latin1').on('data', (part) => {
      text += part;
      if (text.split('HTTP/1.1 ').length - 1 >= replies && /[\]}]$/.test(text)) socket.end();
    });
    socket.on('error', reject);
    socket.on('close', () => resolve({ text, ms: performance.now() - began }));
  });
}

/** A service with one animal, on which these faults are armed. */
async function start(t: TestContext, ...faults: object[]) {
  const lab = await startLab(t, { pets: [{ ...REX, status: 'available' }], perMinute: 1_000, perDay: 1_000 });
  for (const body of faults) await lab.must('POST /lab/faults', body);
  return {
    ...lab,
    talk: (sent: string, replies?: number) => talk(lab.port, sent, replies),
    pets: () => lab.store.read.pets.size,
    armed: async () => (await lab.must('GET /lab/faults')).json.length,
  };
}

test('unavailable: 503 with Retry-After and the limits, nothing is done; who is refused uses up none', async (t) => {
  const { ask, must, pets, recorded } = await start(t, { kind: 'unavailable', seconds: 7 });
  assert.equal((await ask('GET /v1/pets', undefined, { key: '' })).status, 401);
  assert.equal((await ask('GET /v1/nothing')).status, 404);
  assert.equal((await ask('POST /v1/pets', '{')).status, 400);
  const { status, headers, json } = await ask('POST /v1/pets', REX);
  assert.deepEqual([status, json.code, headers.get('retry-after')], [503, 'unavailable', '7']);
  assert.equal(headers.get('x-ratelimit-remaining'), '997');
  assert.match(headers.get('ratelimit')!, /"minute";r=997;/);
  assert.equal(pets(), 1);
  assert.deepEqual((await recorded())[0], [503, 'unavailable']);
  await must('POST /v1/pets', REX);
});

test('drop_after: it is done and durable, and the same Idempotency-Key gets the reply that was lost', async (t) => {
  const { bytes, talk, must, pets, recorded } = await start(t, { kind: 'drop_after' });
  assert.equal((await talk(bytes('POST /v1/pets', REX, 'Idempotency-Key: a\r\n'))).text, '');
  assert.equal(pets(), 2);
  assert.deepEqual(await recorded(), [[null, 'drop_after']]);
  const again = await must('POST /v1/pets', REX, { headers: { 'idempotency-key': 'a' } });
  assert.deepEqual([again.headers.get('idempotent-replayed'), again.json.id, pets()], ['true', 2, 2]);
  await must('POST /lab/faults', { kind: 'drop_after' });
  assert.equal((await talk(bytes('POST /v1/pets', { name: '' }))).text, '', 'a refusal is lost as well');
});

test('truncate: the whole head, half of the body, then the end', async (t) => {
  const { bytes, talk, ask, recorded } = await start(t, { kind: 'truncate', times: 2 });
  const [head, body] = (await talk(bytes('GET /v1/pets'))).text.split('\r\n\r\n');
  const whole = '[{"id":1,"name":"Rex","categoryId":1,"status":"available"}]';
  assert.match(head, /^HTTP\/1\.1 200 OK\r\n/);
  assert.ok(head.includes(`\r\nContent-Length: ${whole.length}\r\n`) && head.includes('X-RateLimit-Remaining: 999'));
  assert.equal(body, whole.slice(0, whole.length / 2));
  await assert.rejects(ask('GET /v1/pets'));
  assert.deepEqual(await recorded(), Array(2).fill([200, 'truncate']));
});

test('delay: it is done at once, and answered late', async (t) => {
  const { must, pets } = await start(t, { kind: 'delay', ms: 200 });
  const began = performance.now();
  const reply = must('POST /v1/pets', REX).then(() => performance.now());
  await until(() => pets() === 2);
  const done = performance.now();
  const answered = await reply;
  assert.ok(
    answered - began >= 195 && done < answered,
    `done after ${done - began} ms, answered after ${answered - began}`,
  );
});

test('pipelined: earlier replies still arrive, later requests are not answered', async (t) => {
  for (const kind of ['drop_before', 'drop_after', 'truncate']) {
    const { bytes, talk, pets, recorded } = await start(t, { kind, operation: 'createPet' });
    const list = bytes('GET /v1/pets');
    const first = bytes('PUT /v1/categories/7', { name: 'fish' }); // its reply has to wait for the disk
    const { text } = await talk(list + first + bytes('POST /v1/pets', REX) + list);
    const status = kind === 'truncate' ? 201 : null;
    const statuses = [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status));
    assert.deepEqual(statuses, status === null ? [200, 201] : [200, 201, status], kind);
    assert.match(text, /\{"id":7,"name":"fish"\}/);
    assert.equal(pets(), kind === 'drop_before' ? 1 : 2);
    await until(async () => (await recorded()).length === 3);
    // What stood behind was never begun.
    assert.deepEqual(await recorded(), [[status, kind], [201, null], [200, null]]); // biome-ignore format: pairs
  }
});

test('in order of arrival, the first fault that fits is used up, once', async (t) => {
  const { bytes, talk, armed } = await start(
    t,
    { kind: 'unavailable', operation: 'listCategories', seconds: 8 },
    { kind: 'unavailable', times: 2, skip: 1 },
    { kind: 'unavailable', operation: 'listPets', seconds: 5 },
  );
  const [pets, categories] = [bytes('GET /v1/pets'), bytes('GET /v1/categories')];
  const { text } = await talk(pets + pets + categories + categories + pets + pets, 6);
  const found = [...text.matchAll(/HTTP\/1\.1 (\d+)|Retry-After: (\d+)/g)].map(([, status, wait]) => wait ?? status);
  // The second lets one request pass, which meets the third.
  assert.deepEqual(found, ['503', '5', '503', '1', '503', '8', '503', '1', '200', '200']);
  assert.equal(await armed(), 0);
});

test('a client that is gone before its broken reply does no harm', async (t) => {
  for (const kind of ['drop_after', 'truncate', 'delay']) {
    const fault = { kind, operation: 'createPet' };
    const { bytes, port, pets, must, recorded } = await start(t, fault);
    const socket = net.connect(port, '127.0.0.1');
    socket.write(bytes('POST /v1/pets', REX), () => socket.destroy());
    await until(() => pets() === 2);
    await until(async () => (await recorded()).length === 1);
    await must('GET /v1/pets');
  }
});

test('status: that one, with Retry-After only where seconds are given; nothing is done', async (t) => {
  const { bytes, talk, must, pets, recorded } = await start(t);
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
      const { text } = await talk(bytes('POST /v1/pets', REX), 1);
      assert.equal(text.slice(0, 12), `HTTP/1.1 ${status}`);
      const { message, ...rest } = JSON.parse(text.slice(text.indexOf('\r\n\r\n')));
      assert.deepEqual([rest, message.length > 20], [{ code, status: Number(status) }, true]);
      assert.equal(/Retry-After: (.*)\r/.exec(text)?.[1], seconds === undefined ? undefined : '9');
      assert.equal(pets(), 1);
    }
  }
  assert.deepEqual((await recorded())[0], [504, 'status']);
});

test('unavailable as a date: the first whole second that is late enough', async (t) => {
  const fault = { kind: 'unavailable', seconds: 2, as: 'date', times: 2 };
  const { clock, bytes, talk, must, check } = await start(t, fault);
  const retryAfter = async () => /Retry-After: (.*)\r/.exec((await talk(bytes('GET /v1/pets'), 1)).text)?.[1];
  assert.equal(await retryAfter(), new Date(clock.wall() + 2_000).toUTCString());
  clock.advance(2_000.5);
  assert.equal(await retryAfter(), new Date(clock.wall() + 2_999.5).toUTCString());
  clock.advance(2_990);
  await must('GET /v1/pets');
  const { verdict, why } = await check('retry_after');
  assert.deepEqual([verdict, why.slice(0, 6)], ['fail', '1 of 2'], 'the date counts, not the seconds');
});

test('hang: no answer, and then the end; who is gone before is gone', async (t) => {
  const { bytes, talk, pets, port, recorded, must } = await start(
    t,
    { kind: 'hang', ms: 300 },
    { kind: 'hang', ms: 120_000 },
  );
  const { text, ms } = await talk(bytes('POST /v1/pets', REX));
  assert.deepEqual([text, pets(), ms >= 290], ['', 1, true], `${ms} ms`);
  const socket = net.connect(port, '127.0.0.1');
  socket.write(bytes('POST /v1/pets', REX));
  await until(async () => (await must('GET /lab/faults')).json.length === 0);
  socket.destroy();
  await until(async () => (await recorded()).length === 2);
  assert.deepEqual(await recorded(), [[null, 'hang'], [null, 'hang']]); // biome-ignore format: pairs
});
