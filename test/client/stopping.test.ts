/** Signals, time limits and close: in a request, in a wait, in the queue, while connecting. */
import assert from 'node:assert/strict';
import { getEventListeners, once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import test from 'node:test';
import { inTurn, json, REX, refusal } from './front.ts';
import { all, failure, harness } from './harness.ts';

const newPet = { name: 'Rex', categoryId: 1 };
const never = () => new Promise<never>(() => {});
/** The client's own way of waiting, but of no length: it ends by the signal alone. */
const waitForSignal = (_: number, signal: AbortSignal) => once(signal, 'abort');
const clock = { now: () => performance.now(), sleep: waitForSignal };

test('a signal ends a request that is under way', async (t) => {
  const stop = new AbortController();
  const { client, front } = await harness(t, () => {
    stop.abort('enough');
    return never();
  });
  const error = await failure(client.createPet(newPet, { signal: stop.signal }));
  assert.deepEqual([error.code, error.cause, error.tries, error.outcomeUnknown], ['aborted', 'enough', 1, true]);
  await front.allClosed();
});

test('a signal ends a wait, and one that has fired keeps the call from being sent', async (t) => {
  const stop = new AbortController();
  const { client, front } = await harness(t, () => refusal(503, 'unavailable', { 'Retry-After': '60' }), {
    clock: {
      ...clock,
      sleep: (ms, signal) => {
        queueMicrotask(() => stop.abort());
        return waitForSignal(ms, signal);
      },
    },
  });
  const error = await failure(client.createPet(newPet, { signal: stop.signal }));
  assert.deepEqual([error.code, error.tries, error.outcomeUnknown], ['aborted', 1, false]);
  assert.equal((await failure(all(client.listPets({ signal: stop.signal })))).tries, 0);
  assert.equal(front.asked.length, 1);
});

test('a signal ends the wait for a turn, and the turn goes to the next', async (t) => {
  let release = () => {};
  const { client, front } = await harness(t, async () => {
    await new Promise<void>((resolve) => (release = resolve));
    return json(REX, { 'X-RateLimit-Remaining': '1' }, 201);
  });
  const stop = new AbortController();
  const first = client.createPet(newPet);
  const second = failure(client.createPet(newPet, { signal: stop.signal }));
  const third = client.createPet(newPet);
  while (front.asked.length === 0) await new Promise(setImmediate);
  stop.abort();
  assert.deepEqual([(await second).code, (await second).tries], ['aborted', 0]);
  release();
  await first;
  while (front.asked.length === 1) await new Promise(setImmediate);
  release();
  await third;
  assert.equal(front.asked.length, 2);
});

test('a signal need not wait for a connection', async (t) => {
  const mute = createServer((socket) => void socket.on('error', () => {})).listen(0, '127.0.0.1');
  t.after(() => mute.close());
  await once(mute, 'listening');
  const { port } = mute.address() as AddressInfo;
  const { client } = await harness(t, never, { baseUrl: `https://127.0.0.1:${port}` }); // it never shakes hands
  const stop = new AbortController();
  mute.on('connection', () => stop.abort());
  assert.equal((await failure(client.createPet(newPet, { signal: stop.signal }))).code, 'aborted');
});

test('one signal serves a thousand calls without a warning, and nothing stays in it', async (t) => {
  const warned = t.mock.method(process, 'emitWarning', () => {});
  const { client } = await harness(t, () => json([REX]));
  const { signal } = new AbortController();
  await Promise.all(Array.from({ length: 1_000 }, () => all(client.listPets({ signal }))));
  assert.equal(getEventListeners(signal, 'abort').length, 0);
  assert.equal(warned.mock.callCount(), 0);
});

test('a reply that drips is not silent, and ended by the budget', async (t) => {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n[');
    const drip = setInterval(() => socket.write(' '), 2);
    socket.on('close', () => clearInterval(drip));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const options = { baseUrl: `http://127.0.0.1:${port}/v1`, budgetMs: 900, silenceMs: 600 };
  const { client } = await harness(t, never, options);
  const error = await failure(client.createPet(newPet));
  assert.deepEqual([error.code, error.status, error.tries, error.outcomeUnknown], ['timeout', 0, 1, true]);
  assert.match(error.message, /900 ms of the call/);
});

test('a silent try is repeated, after a wait that is no shorter than meant', async (t) => {
  let silentAt = 0;
  const turn = inTurn(json(REX, {}, 201));
  const silence = () => {
    silentAt = performance.now();
    return never();
  };
  const { client } = await harness(t, () => (silentAt === 0 ? silence() : turn()), {
    silenceMs: 600,
    clock: undefined,
  });
  assert.deepEqual(await client.createPet(newPet), REX);
  assert.ok(performance.now() - silentAt >= 800);
});

test('close ends what is under way, what waits, and what comes after', async (t) => {
  const { client, front } = await harness(
    t,
    inTurn(refusal(503, 'unavailable', { 'Retry-After': '60' }), json([REX])),
    { clock },
  );
  const waiting = failure(client.createPet(newPet));
  while (front.asked.length === 0) await new Promise(setImmediate);
  await all(client.listPets());
  front.fault = never;
  const under = failure(client.createPet(newPet));
  while (front.asked.length < 3) await new Promise(setImmediate);
  await client.close();
  assert.deepEqual([(await waiting).code, (await waiting).outcomeUnknown], ['closed', false]);
  assert.deepEqual([(await under).code, (await under).outcomeUnknown], ['closed', true]);
  assert.equal((await failure(all(client.listPets()))).code, 'closed');
  await front.allClosed();
});
