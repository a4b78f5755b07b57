/** Signals, time limits and close: in a request, in a wait, in the queue, while connecting. */
import assert from 'node:assert/strict';
import { getEventListeners, once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import test, { type TestContext } from 'node:test';
import { inTurn, json, REX, refusal } from './front.ts';
import { all, failure, harness, newPet } from './harness.ts';

const never = () => new Promise<never>(() => {});
const busy = refusal(503, 'unavailable', { 'Retry-After': '60' });
/** The client's own way of waiting, but of no length: it ends by the signal alone. */
const waitForSignal = (_: number, signal: AbortSignal) => once(signal, 'abort');

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise(setImmediate);
}

/** The address of a server that is no HTTP server. */
async function socketServer(t: TestContext, onSocket: (socket: Socket) => void): Promise<string> {
  const server = createServer((socket) => onSocket(socket.on('error', () => {})));
  t.after(() => server.close());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

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
  const sleep = (ms: number, signal: AbortSignal) => {
    queueMicrotask(() => stop.abort());
    return waitForSignal(ms, signal);
  };
  const { client, front } = await harness(t, () => busy, { timing: { sleep } });
  const error = await failure(client.createPet(newPet, { signal: stop.signal }));
  assert.deepEqual([error.code, error.tries, error.outcomeUnknown], ['aborted', 1, false]);
  assert.equal((await failure(all(client.listPets({ signal: stop.signal })))).tries, 0);
  assert.equal(front.asked.length, 1);
});

test('a signal ends the wait for a turn, and the turn goes to the next', async (t) => {
  let release = () => {};
  const { client, front } = await harness(t, async () => {
    await new Promise<void>((resolve) => (release = resolve));
    return json(REX, {}, 201);
  });
  const stop = new AbortController();
  const first = client.createPet(newPet);
  const second = failure(client.createPet(newPet, { signal: stop.signal }));
  const third = client.createPet(newPet);
  await until(() => front.asked.length === 1);
  stop.abort();
  assert.deepEqual([(await second).code, (await second).tries], ['aborted', 0]);
  release();
  await first;
  await until(() => front.asked.length === 2);
  release();
  await third;
  assert.equal(front.asked.length, 2);
});

test('a signal need not wait for a connection', async (t) => {
  const stop = new AbortController();
  const mute = await socketServer(t, () => stop.abort());
  const { client } = await harness(t, never, { baseUrl: `https://${mute}` }); // it never shakes hands
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
  const dripping = await socketServer(t, (socket) => {
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n[');
    const drip = setInterval(() => socket.write(' '), 2);
    socket.on('close', () => clearInterval(drip));
  });
  const timing = { silenceMs: 1_500 }; // a machine that stands still for so long would make silence of it
  const { client } = await harness(t, never, { baseUrl: `http://${dripping}`, budgetMs: 2_500, timing });
  const error = await failure(client.createPet(newPet));
  assert.deepEqual([error.code, error.status, error.tries, error.outcomeUnknown], ['timeout', 0, 1, true]);
  assert.match(error.message, /within 2500 ms/);
});

test('a silent try is repeated, by real timers', async (t) => {
  const fault = () => (front.asked.length === 1 ? never() : json(REX, {}, 201));
  const { client, front } = await harness(t, fault, { timing: { silenceMs: 600 } });
  assert.deepEqual(await client.createPet(newPet), REX);
  assert.equal(front.asked.length, 2);
});

test('close ends what is under way, what waits, and what comes after', async (t) => {
  const { client, front } = await harness(t, inTurn(busy, json([REX])), { timing: { sleep: waitForSignal } });
  const waiting = failure(client.createPet(newPet));
  await until(() => front.asked.length === 1);
  await all(client.listPets());
  front.fault = never;
  const under = failure(client.createPet(newPet));
  await until(() => front.asked.length === 3);
  await client.close();
  assert.deepEqual([(await waiting).code, (await waiting).outcomeUnknown], ['closed', false]);
  assert.deepEqual([(await under).code, (await under).outcomeUnknown], ['closed', true]);
  assert.equal((await failure(all(client.listPets()))).code, 'closed');
  await front.allClosed();
});
