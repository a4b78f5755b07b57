/** Callers that do odd things: what they are told stays true. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import test from 'node:test';
import { PetstoreClient, PetstoreError } from '../../src/client/client.ts';
import { failure, harness, inTurn, json, KEY, newPet, REX, refusal } from './front.ts';

const made = json(REX, { 'x-request-id': 'r-2' }, 201);

test('who stops a call in the hook that hears of its success is told that it may be done', async (t) => {
  const calls: [call: (client: PetstoreClient, signal: AbortSignal) => Promise<unknown>, outcomeUnknown: boolean][] = [
    [(client, signal) => client.createPet(newPet, { signal }), true],
    [(client, signal) => client.updateOrder(1, 'delivered', { signal }), true],
    [(client, signal) => client.getPet(1, { signal }), false],
  ];
  for (const code of ['aborted', 'closed']) {
    for (const [call, outcomeUnknown] of calls) {
      const stop = new AbortController();
      const onExchange = () => (code === 'closed' ? void client.close() : stop.abort());
      const { client } = await harness(t, () => made, { onExchange });
      const error = await failure(call(client, stop.signal));
      assert.deepEqual([error.code, error.status, error.outcomeUnknown], [code, 201, outcomeUnknown]);
    }
  }
});

test('who stops a call while it waits, or its reply comes, is told of the last reply', async (t) => {
  const sleep = (_: number, signal: AbortSignal) => once(signal, 'abort').then(() => new Promise<never>(() => {}));
  const busy = refusal(503, 'unavailable', { 'Retry-After': '60' });
  const stop = new AbortController();
  const onExchange = () => setImmediate(() => stop.abort());
  const { client } = await harness(t, () => busy, { timing: { sleep }, onExchange });
  const error = await failure(client.createPet(newPet, { signal: stop.signal }));
  assert.deepEqual([error.code, error.status, error.requestId, error.tries], ['aborted', 503, 'r-1', 1]);
  const unsent = await failure(client.createPet(newPet, { budgetMs: 1_000 }));
  assert.deepEqual([unsent.code, unsent.status, unsent.requestId, unsent.tries], ['unavailable', 503, undefined, 0]);
});

test('headers that are fetch’s to set are refused by name, and what fetch refuses was never sent', async (t) => {
  const { client, front } = await harness(t, () => made);
  for (const name of ['Content-Length', 'Transfer-Encoding', 'Expect', 'Keep-Alive', 'Upgrade']) {
    const { code, message } = await failure(client.createPet(newPet, { headers: { [name]: '5' } }));
    assert.deepEqual([code, message], ['invalid_argument', `headers: ${name} is set by fetch`]);
  }
  // As undici refuses `Connection: upgrade`, up to Node 24; newer ones take it.
  const cause = Object.assign(new Error('invalid connection header'), { code: 'UND_ERR_INVALID_ARG' });
  const refusing = await harness(t, () => made, {
    fetch: () => Promise.reject(new TypeError('fetch failed', { cause })),
  });
  const error = await failure(refusing.client.createPet(newPet));
  assert.deepEqual([error.code, error.tries, error.outcomeUnknown], ['network', 1, false]);
  assert.match(error.message, /: fetch refuses the request; nothing was sent$/);
  assert.equal(front.asked.length, 0);
  await client.createPet(newPet, { headers: { Connection: 'close' } });
});

test('no budget outlasts the 24 hours for which an Idempotency-Key is kept', async (t) => {
  const day = 86_400_000;
  const { client, front } = await harness(t, inTurn('cut', refusal(429, 'key_banned', { 'Retry-After': '86400' })));
  for (const budgetMs of [day, day + 1_000, 2 ** 30]) {
    const { code, message } = await failure(client.createPet(newPet, { budgetMs }));
    assert.deepEqual([code, /^budgetMs must be/.test(message)], ['invalid_argument', true]);
    assert.throws(() => new PetstoreClient({ baseUrl: 'http://x', key: KEY, budgetMs }), RangeError);
  }
  assert.equal(front.asked.length, 0);
});

test('a signal that nobody could take a listener from is none', async (t) => {
  const { client } = await harness(t, () => json(REX));
  const signal = { aborted: false, addEventListener() {} };
  assert.match((await failure(client.getPet(1, { signal: signal as never }))).message, /signal must be an AbortSignal/);
});

test('who loads the client by import and by require knows the errors of either', async () => {
  const again = '../../src/client/errors.ts?again';
  const other: typeof import('../../src/client/errors.ts') = await import(again);
  assert.notEqual(other.PetstoreError, PetstoreError);
  for (const [Made, Asked] of [
    [PetstoreError, other.PetstoreError],
    [other.PetstoreError, PetstoreError],
  ]) {
    const error = new Made('closed', 'the client was closed');
    class Narrower extends Asked {}
    assert.ok(error instanceof Asked && error instanceof Error && !(error instanceof Narrower));
    assert.ok(new Narrower('closed', 'the client was closed') instanceof Made);
    for (const none of [new Error('x'), { name: 'PetstoreError' }, null, undefined, 'x', () => {}])
      assert.ok(!(none instanceof Asked));
  }
});
