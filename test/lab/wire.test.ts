/** What goes wrong on the wire when a fault is armed, byte by byte, and that each goes wrong exactly once. */
import assert from 'node:assert/strict';
import net from 'node:net';
import { test } from 'node:test';
import { type LabService, REX, startLab } from './service.ts';

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

const ask = (line: string, key: string, body?: object, headers = '') => {
  const text = body === undefined ? '' : JSON.stringify(body);
  const type = body === undefined ? '' : `Content-Type: application/json\r\nContent-Length: ${text.length}\r\n`;
  return `${line} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n${type}${headers}\r\n${text}`;
};

async function start(t: Parameters<typeof startLab>[0], ...faults: object[]) {
  const service = await startLab(t, { content: { categories: [], pets: [{ ...REX, status: 'available' }] } });
  const key = await service.makeKey({ perMinute: 100, perDay: 1_000 });
  await service.must('POST /lab/reset', { key });
  for (const body of faults) await service.must('POST /lab/faults', { key, body });
  return { ...service, key };
}
/** What the record says, the newest first: of each request its status and the fault that it met. */
const statuses = async ({ must }: LabService, key: string): Promise<unknown[][]> =>
  (await must('GET /lab/requests', { key })).json.map((one: Record<string, unknown>) => [one.status, one.fault]);

async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 20)); // a key may ask the lab 600 times
}

test('unavailable: 503 with Retry-After, the limits on it, and nothing is done', async (t) => {
  const service = await start(t, { kind: 'unavailable', seconds: 7 });
  const { key, engine } = service;
  const { status, headers, json } = await service.ask('POST /v1/pets', { key, body: REX });
  assert.deepEqual([status, json.code, headers.get('retry-after')], [503, 'unavailable', '7']);
  assert.equal(headers.get('x-ratelimit-remaining'), '99');
  assert.match(headers.get('ratelimit')!, /"minute";r=99;/);
  assert.equal(engine.store.read.counts().pets, 1);
  assert.deepEqual(await statuses(service, key), [[503, 'unavailable']]);
  await service.must('POST /v1/pets', { key, body: REX });
});

test('drop_before: the connection ends, and nothing was done', async (t) => {
  const service = await start(t, { kind: 'drop_before', operation: 'createPet' });
  const { key, port, engine } = service;
  const { text } = await talk(port, ask('POST /v1/pets', key, REX));
  assert.equal(text, '');
  assert.equal(engine.store.read.counts().pets, 1);
  assert.deepEqual(await statuses(service, key), [[null, 'drop_before']]);
});

test('drop_after: it is done and durable, and the same Idempotency-Key gets the reply that was lost', async (t) => {
  const service = await start(t, { kind: 'drop_after' });
  const { key, port, engine } = service;
  assert.equal((await talk(port, ask('POST /v1/pets', key, REX, 'Idempotency-Key: a\r\n'))).text, '');
  assert.equal(engine.store.read.counts().pets, 2);
  assert.deepEqual(await statuses(service, key), [[null, 'drop_after']]);
  const again = await service.must('POST /v1/pets', { key, body: REX, headers: { 'idempotency-key': 'a' } });
  assert.deepEqual([again.headers.get('idempotent-replayed'), again.json.id], ['true', 2]);
  assert.equal(engine.store.read.counts().pets, 2);
  await service.must('POST /lab/faults', { key, body: { kind: 'drop_after' } });
  assert.equal((await talk(port, ask('POST /v1/pets', key, { name: '' }))).text, '', 'a refusal is lost as well');
});

test('truncate: the whole head, half of the body, then the end', async (t) => {
  const service = await start(t, { kind: 'truncate', times: 2 });
  const { key, port } = service;
  const { text } = await talk(port, ask('GET /v1/pets', key));
  const [head, body] = text.split('\r\n\r\n');
  const whole = '[{"id":1,"name":"Rex","categoryId":1,"status":"available"}]';
  assert.match(head, /^HTTP\/1\.1 200 OK\r\n/);
  assert.ok(head.includes(`\r\nContent-Length: ${whole.length}\r\n`) && head.includes('X-RateLimit-Remaining: 99'));
  assert.equal(body, whole.slice(0, whole.length / 2));
  await assert.rejects(service.ask('GET /v1/pets', { key }));
  assert.deepEqual(await statuses(service, key), Array(2).fill([200, 'truncate']));
});

test('drip: the whole reply, a little at a time; then the connection goes on', async (t) => {
  const service = await start(t, { kind: 'drip', ms: 300 });
  const { key, port } = service;
  const { text, ms, pieces } = await talk(port, ask('GET /v1/pets', key) + ask('GET /v1/pets', key), 2);
  assert.ok(ms >= 290, `it took ${ms} ms`);
  assert.ok(pieces > 2, `it came in ${pieces} pieces`);
  assert.match(text, /"status":"available"\}\]HTTP\/1\.1 200 OK\r\n.*"status":"available"\}\]$/s);
  assert.deepEqual((await statuses(service, key)).flat(), [200, null, 200, 'drip']);
});

test('delay: it is done at once, and told late; who gives up meanwhile has lost the reply', async (t) => {
  const service = await start(t, { kind: 'delay', ms: 200, times: 2 });
  const { key, engine, must } = service;
  const began = performance.now();
  const reply = must('POST /v1/pets', { key, body: REX }).then(() => performance.now());
  await until(() => engine.store.read.counts().pets === 2);
  const done = performance.now();
  const told = await reply;
  assert.ok(told - began >= 195 && done < told, `done after ${done - began} ms, told after ${told - began}`);

  const giving = new AbortController();
  const headers = { authorization: `Bearer ${key}` };
  const lost = fetch(`${service.url}/v1/pets`, { headers, signal: giving.signal });
  await until(async () => (await must('GET /lab/faults', { key })).json.length === 0);
  giving.abort();
  await assert.rejects(lost);
  await until(async () => (await statuses(service, key)).length === 2);
});

test('replies to what was asked before on the connection still arrive; what was asked behind is not answered', async (t) => {
  for (const kind of ['drop_before', 'drop_after', 'truncate']) {
    const service = await start(t, { kind, operation: 'createPet' });
    const { key, port, engine } = service;
    const list = ask('GET /v1/pets', key);
    const first = ask('PUT /v1/categories/7', key, { name: 'fish' }); // its reply has to wait for the disk
    const { text } = await talk(port, list + first + ask('POST /v1/pets', key, REX) + list);
    const found = [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status);
    assert.deepEqual(found, kind === 'truncate' ? ['200', '201', '201'] : ['200', '201'], kind);
    assert.match(text, /\{"id":7,"name":"fish"\}/);
    assert.equal(engine.store.read.counts().pets, kind === 'drop_before' ? 1 : 2);
    await until(async () => (await statuses(service, key)).length === 4);
    const told = [null, kind === 'truncate' ? 201 : null, 201, 200].map((status, at) => [
      status,
      at === 1 ? kind : null,
    ]);
    assert.deepEqual(await statuses(service, key), told);
  }
});

test('each fault goes wrong exactly once: many at a time', async (t) => {
  const faults = [
    { kind: 'unavailable', times: 3, skip: 2 },
    { kind: 'unavailable', operation: 'createPet', times: 2, seconds: 9 },
  ];
  const service = await start(t, ...faults);
  const { key, ask: send } = service;
  const one = (_: unknown, n: number) =>
    n % 2 ? send('POST /v1/pets', { key, body: REX }) : send('GET /v1/pets', { key });
  const all = await Promise.all(Array.from({ length: 40 }, one));
  const waits = all.map(({ headers }) => headers.get('retry-after')).filter((wait) => wait !== null);
  assert.deepEqual(waits.sort(), ['1', '1', '1', '9', '9']);
  assert.deepEqual((await service.must('GET /lab/faults', { key })).json, []);
});

test('each fault goes wrong exactly once: pipelined, in order', async (t) => {
  const { key, port } = await start(t, { kind: 'unavailable', times: 2, skip: 1 }, { kind: 'unavailable', seconds: 5 });
  const { text } = await talk(port, ask('GET /v1/pets', key).repeat(6), 6);
  const found = [...text.matchAll(/HTTP\/1\.1 (\d+)|Retry-After: (\d+)/g)].map(([, status, wait]) => wait ?? status);
  // The first is let pass by the first fault, so it meets the second.
  assert.deepEqual(found, ['503', '5', '503', '1', '503', '1', '200', '200', '200']);
});

test('a request that is refused before it is read uses up no fault', async (t) => {
  const { key, ask: send, must } = await start(t, { kind: 'unavailable' });
  assert.equal((await send('GET /v1/nothing', { key })).status, 404);
  assert.equal((await send('POST /v1/pets', { key, body: '{' })).status, 400);
  assert.equal((await send('GET /v1/pets', {})).status, 401);
  assert.equal((await must('GET /lab/faults', { key })).json.length, 1);
});

test('a client that is gone before its broken reply does no harm', async (t) => {
  for (const kind of ['drop_after', 'truncate', 'drip', 'delay']) {
    const fault = { kind, operation: 'createPet', ...(kind === 'drip' && { ms: 50 }) };
    const { key, port, engine, must } = await start(t, fault);
    const socket = net.connect(port, '127.0.0.1', () => {
      socket.write(ask('POST /v1/pets', key, REX), () => socket.destroy());
    });
    await until(() => engine.store.read.counts().pets === 2);
    await until(async () => (await must('GET /lab/requests', { key })).json.length === 1);
    await must('GET /v1/pets', { key });
  }
});

test('HEAD meets faults as GET does', async (t) => {
  for (const kind of ['truncate', 'drip', 'drop_after']) {
    const { key, port } = await start(t, { kind, ...(kind === 'drip' && { ms: 0 }) });
    const { text } = await talk(port, ask('HEAD /v1/pets', key, undefined, 'Connection: close\r\n'));
    assert.match(text, kind === 'drop_after' ? /^$/ : /^HTTP\/1\.1 200 OK\r\n.*\r\n\r\n$/s, kind);
  }
});
