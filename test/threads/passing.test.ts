/** Bodies on their way to the thread that writes take no more than their bytes, and have a maximum together. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import type { Asked } from '../../src/asked.ts';
import type { Line } from '../../src/threads/line.ts';
import { passing, unpacked } from '../../src/threads/passing.ts';
import { workplace } from '../operator/workplace.ts';
import { requestsOf } from '../raw.ts';
import { NO_THREADS } from './served.ts';

const MAX_BODY_BYTES = 65_536;
const MAX_PASSING_BYTES = 32 * 1024 * 1024;

const asking = (body: string): Asked => {
  const call = { param: '7', query: 'a=b\n', conditions: { 'if-match': '"x"' }, idempotencyKey: '"\xe9"', body };
  return { requestId: 'r', endpoint: 'createPet', caller: 'k1', authorization: 'Bearer x', ...call };
};

/** As the main thread meets them: the text of each question, and an answer to all of them. */
function line() {
  const texts: string[] = [];
  const waiting: ((reply: string) => void)[] = [];
  const ask = (_: string, text: string) => {
    texts.push(text);
    return new Promise<string>((resolve) => waiting.push(resolve));
  };
  const answer = () => {
    for (const resolve of waiting.splice(0)) resolve('{"status":201}');
  };
  return { line: { ask } as Pick<Line, 'ask'>, texts, answer };
}

test('a body of any bytes arrives as it was, and its text is hardly longer', () => {
  const { line: main, texts } = line();
  const pass = passing(main, 2);
  const every = String.fromCharCode(...Array.from({ length: 256 }, (_, code) => code));
  for (const body of ['', '\n', '{"name":\n"a"}', '\0'.repeat(MAX_BODY_BYTES), every]) {
    void pass(asking(body));
    const text = texts.pop()!;
    assert.deepEqual(unpacked(text), asking(body));
    assert.ok(text.length < body.length + 300, `${text.length} characters for ${body.length}`);
  }
});

test('beyond the maximum a write is refused at once, and taken again when one has its answer', async () => {
  for (const threads of [2, 8]) {
    const { line: main, texts, answer } = line();
    const pass = passing(main, threads);
    const one = asking(' '.repeat(MAX_BODY_BYTES));
    const taken = [pass(one)];
    const most = Math.floor(MAX_PASSING_BYTES / threads / texts[0].length);
    while (taken.length < most) taken.push(pass(one));
    await assert.rejects(pass(one), { failure: 'busy' });
    answer();
    assert.deepEqual(await Promise.all(taken), Array(most).fill({ status: 201 }));
    const again = pass(one);
    answer();
    assert.deepEqual(await again, { status: 201 });
  }
});

test('nine hundred large bodies that become complete at once end no process with a small heap', {
  skip: NO_THREADS,
  timeout: 120_000,
}, async (t) => {
  const { headers, serve } = await workplace(t);
  const key = (await headers()).authorization.slice('Bearer '.length);
  const server = await serve('--threads 2', { env: { NODE_OPTIONS: '--max-old-space-size=128' } });
  const head = requestsOf(key).post(`Content-Length: ${MAX_BODY_BYTES}\r\n`);
  const clients = await Promise.all(
    Array.from({ length: 900 }, async () => {
      const client = net.connect(Number(new URL(server.url).port), '127.0.0.1').setEncoding('latin1');
      await once(client, 'connect');
      client.write(head + '\x01'.repeat(MAX_BODY_BYTES - 1));
      return client;
    }),
  );
  await wait(1_000);
  const replies = clients.map(async (client) => {
    client.write('\x01');
    const came = Promise.race([once(client, 'data'), once(client, 'close')]);
    const [text] = (await came) as [string];
    client.destroy();
    return String(text);
  });
  for (const text of await Promise.all(replies)) {
    assert.match(text, /^HTTP\/1.1 (?:400|503) .*"code":"(?:invalid_json|unavailable)"/s);
  }
  assert.equal((await server.stop()).exit, 0);
});
