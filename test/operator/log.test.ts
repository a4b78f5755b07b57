/** The log: its lines, what it hides, and a reader that is slow or gone. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { Writable } from 'node:stream';
import { test } from 'node:test';
import { logTo } from '../../src/operator/watch.ts';
import type { Summary } from '../../src/service/routes.ts';
import { SetClock } from '../clock.ts';
import { command } from '../program.ts';
import { missing, workplace } from './workplace.ts';

const REQUESTS = 400;

const linesOf = (text: string): Record<string, unknown>[] => Array.from(text.match(/.+/g)!, (line) => JSON.parse(line));
const turn = () => new Promise((resolve) => setImmediate(resolve));

/** `take`: the reader takes what was written. */
function logging(wall?: number) {
  const writes: string[] = [];
  let take = () => {};
  const out = new Writable({
    writev: (chunks, done) => {
      writes.push(chunks.map(({ chunk }) => String(chunk)).join(''));
      take = done;
    },
  });
  const log = logTo(out, new SetClock(wall));
  const access = (target: string | undefined) => log.access({ target, ms: 1, address: () => '::1' } as Summary);
  return { log, access, writes, take: () => turn().then(() => take()) };
}

test('a line is one JSON object; a key is hidden, however it is written', async () => {
  const { writes, log, access, take } = logging(Date.UTC(2026, 0, 2, 3, 4, 5, 6));
  log.info('first', { count: 3, big: 2n ** 63n });
  const secret = 'aB3'.repeat(12);
  log.warn(`ps_test_${secret}`, { name: `of ps_live_${secret.slice(0, 8)}`, error: new Error(`ps_test_${secret}`) });
  const encoded = Array.from(secret, (one) => `%${one.charCodeAt(0).toString(16)}`).join('');
  const targets = [
    `/v1/pets?x=ps_live_${secret}`,
    `/nope?k=ps%5Flive%5F${secret}`,
    `/nope?k=%70s%5Flive%5F${secret}`,
    `/nope?k=ps%255Flive%255F${secret}`,
    `/nope?k=ps_live_${encoded}`,
    `/nope?k=p%73_live_${encoded.toUpperCase()}`,
    `/nope?k=${secret.slice(0, 20)}`,
  ];
  for (const target of targets) access(target);
  access('/v1/pets?limit=100&after=-9007199254740993000&status=available');
  access(undefined);
  access(`/\u009b31m\u202e\u2028\x7f?${'y '.repeat(4_000)}`);
  await take();
  const text = writes.join('');
  assert.doesNotMatch(text, /aB3|%61|%42/);
  assert.doesNotMatch(text, /[\0-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]/, 'no control characters of others');
  assert.equal(text.match(/\[hidden\]/g)!.length, targets.length + 3);
  const lines = linesOf(text);
  const time = '2026-01-02T03:04:05.006Z';
  assert.deepEqual(lines[0], { time, level: 'info', message: 'first', count: 3, big: '9223372036854775808' });
  assert.match(String(lines[1].error), /^Error: ps_test_\[hidden\]\n +at /);
  const [query, none, long] = lines.slice(-3);
  assert.equal(query.target, '/v1/pets?limit=100&after=-9007199254740993000&status=available');
  assert.ok(!('target' in none));
  assert.match(
    String(long.target),
    /^\/\u009b31m\u202e\u2028\x7f\?.{504}$/,
    'the same text when it is parsed, but cut',
  );
});

test('each line is written, in order, or counted as dropped: the newest are dropped', async () => {
  for (let room = 40; room <= 1_000; room += 160) {
    const { writes, log, take } = logging();
    log.info('first');
    await turn();
    log.info('x'.repeat(room));
    for (let i = 0; i < 1_100; i++) log.info('x'.repeat(1_000), { i });
    log.info('short');
    await take();
    await take();
    log.info('last');
    await turn();
    const lines = linesOf(writes.join(''));
    const counts = lines.flatMap(({ droppedBefore }) => (droppedBefore as number | undefined) ?? []);
    const sum = lines.length + counts.reduce((all, one) => all + one, 0);
    assert.equal(sum, 1 + 1 + 1_100 + 2, `${room}: ${counts}`);
    assert.ok(counts.length > 0 && lines.at(-1)!.message === 'last');
    for (const [at, { i }] of lines.filter(({ i }) => i !== undefined).entries()) assert.equal(i, at);
  }
});

test('the access log has a line a request, with what is needed to find it again', async (t) => {
  const { serve } = await workplace(t);
  const server = await serve('--first-key free --access-log --trust-proxy 1');
  const headers = { authorization: `Bearer ${server.key}`, 'x-forwarded-for': '10.0.0.1, 203.0.113.9' };
  const reply = await fetch(`${server.url}/pets?limit=2`, { headers });
  await fetch(`${server.url}/none`, { method: 'POST', body: 'secret body' });
  const unreadable = connect(Number(new URL(server.url).port), '127.0.0.1')
    .end('no request\r\n\r\n')
    .resume();
  await once(unreadable, 'close');
  const { stderr } = await server.stop();
  const [first, second, third] = linesOf(stderr).filter(({ level }) => level === 'access');
  const { time, ms, ...rest } = first as { time: string; ms: number };
  assert.ok(Math.abs(Date.parse(time) - Date.now()) < 60_000 && ms >= 0 && ms < 10_000);
  const requestId = reply.headers.get('x-request-id');
  const request = { requestId, method: 'GET', target: '/v1/pets?limit=2', status: 200, key: 'k1' };
  assert.deepEqual(rest, { level: 'access', message: 'request', ...request, address: '203.0.113.9' });
  assert.deepEqual([second.method, second.status, second.address], ['POST', 401, '127.0.0.1']);
  assert.deepEqual([third.status, third.address, 'target' in third], [400, '127.0.0.1', false]);
  assert.ok(!('key' in second) && !stderr.includes('secret body'));
});

for (const reader of ['pipe', 'terminal']) {
  const options = { skip: reader === 'terminal' && missing('script'), timeout: 240_000 };
  test(`a ${reader} that nobody reads any more stops no reply, and no shutdown`, options, async (t) => {
    const { cwd, at, headers: headersOf } = await workplace(t);
    const headers = await headersOf();
    const serve = `echo $$ > pid; exec ${(await command()).join(' ')} serve --port 0 --access-log > out`;
    const [file, ...words] = reader === 'pipe' ? ['sh', '-c', serve] : ['script', '-qfc', serve, '/dev/null'];
    const child = spawn(file, words, { cwd, stdio: ['ignore', 'pipe', 'pipe'] }); // and neither is read
    const read = (name: string) => readFile(at(name), 'utf8').catch(() => '');
    t.after(async () => child.exitCode === null && process.kill(Number(await read('pid')), 'SIGKILL'));
    let url = '';
    while (url === '') url = /http:\S+/.exec(await read('out'))?.[0] ?? '';
    // Each line has some 700 bytes: the kernel's buffers hold some 100, and the log's own the rest.
    const client = async () => {
      for (let i = 0; i < REQUESTS / 8; i++) {
        const reply = await fetch(`${url}/pets?${'limit=1'.padEnd(1_500, '-')}`, { headers });
        assert.equal(reply.status, 400, await reply.text());
      }
    };
    await Promise.all(Array.from({ length: 8 }, client));
    process.kill(Number(await read('pid')), 'SIGTERM');
    let text = '';
    if (reader === 'pipe') assert.deepEqual(await once(child, 'exit'), [0, null]);
    for await (const chunk of reader === 'pipe' ? child.stderr : child.stdout) text += chunk;
    assert.ok(text.length > 10_000 && text.length < REQUESTS * 1_500, `${text.length}: the reader did stop`);
  });
}
