/** A client of others in the drill, in real time: undici's RetryAgent, used with care. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { Agent, RetryAgent, request } from 'undici';
import { serving, temporary } from '../program.ts';
import { shop } from './clients.ts';

test('undici with its RetryAgent, and an Idempotency-Key for each thing that is made: an A', async (t) => {
  const data = await temporary(t);
  const seed = new URL('../../data/seed.json', import.meta.url).pathname;
  const words = ['--lab', '--environment', 'staging', '--first-key', 'business', '--seed', seed, '--data', data];
  const { url, key } = await serving(t, words);
  const origin = new URL(url).origin;
  const lab = async (method: 'GET' | 'POST', path: string) => {
    const reply = await fetch(`${origin}/lab/${path}`, { method, headers: { authorization: `Bearer ${key}` } });
    return (await reply.json()) as { grade: string; seen: number };
  };
  await lab('POST', 'drill');
  const retried = { methods: ['GET', 'POST'] as ('GET' | 'POST')[], statusCodes: [429, 500, 502, 503, 504] };
  const dispatcher = new RetryAgent(new Agent({ connections: 1 }), {
    ...retried,
    minTimeout: 100,
    maxTimeout: 120_000,
  });
  t.after(() => dispatcher.close());
  const ask = async (method: 'GET' | 'POST', path: string, body?: object) => {
    const made = { 'content-type': 'application/json', 'idempotency-key': randomUUID() };
    const headers = { authorization: `Bearer ${key}`, ...made };
    const reply = await request(origin + path, { method, dispatcher, headers, body: body && JSON.stringify(body) });
    if (reply.statusCode >= 400) throw new Error(await reply.body.text());
    return { link: String(reply.headers.link ?? ''), json: (await reply.body.json()) as { id: number } };
  };
  await shop({
    async listAll() {
      for (let next: string | undefined = '/v1/pets?limit=10'; next !== undefined; ) {
        // Of a reply that breaks off it has seen the head: it leaves it to its caller to ask for all of it again.
        const { link }: { link: string } = await ask('GET', next).catch(() => ask('GET', next as string));
        next = /<([^>]+)>; rel="next"/.exec(link)?.[1];
      }
    },
    add: async (name) => (await ask('POST', '/v1/pets', { name, categoryId: 1 })).json.id,
    order: (petId) => ask('POST', '/v1/store/orders', { petId }),
  });
  const graded = await lab('GET', 'grade');
  assert.deepEqual(await lab('GET', 'faults'), []);
  assert.deepEqual([graded.grade, graded.seen], ['A', 90], JSON.stringify(graded, null, 2));
});
