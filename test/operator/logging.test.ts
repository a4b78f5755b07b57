import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import http from 'node:http';
import { connect } from 'node:net';
import path from 'node:path';
import { Writable } from 'node:stream';
import { test } from 'node:test';
import { Logger } from '../../src/operator/logging.ts';
import { SetClock } from '../clock.ts';
import { command, program, serving, temporary } from '../program.ts';

const linesOf = (text: string): Record<string, unknown>[] => Array.from(text.match(/.+/g)!, (line) => JSON.parse(line));
const turn = () => new Promise((resolve) => setImmediate(resolve));

/** `take`: whoever reads takes what was written. */
function logging(wall = 0) {
  const writes: string[] = [];
  let take = () => {};
  const out = new Writable({
    writev: (chunks, done) => {
      writes.push(chunks.map(({ chunk }) => String(chunk)).join(''));
      take = done;
    },
  });
  const log = new Logger({ out, clock: new SetClock(wall) });
  return { log, writes, take: () => turn().then(() => take()) };
}

test('a line is one JSON object with time, level, message and fields; the lines of one turn leave in one write', async () => {
  const { writes, log } = logging(Date.UTC(2026, 0, 2, 3, 4, 5, 6));
  log.info('first', { count: 3, big: 2n ** 63n });
  log.error('second', { error: new Error('why') });
  await turn();
  const [[first, second], ...more] = writes.map(linesOf);
  const time = '2026-01-02T03:04:05.006Z';
  assert.deepEqual(first, { time, level: 'info', message: 'first', count: 3, big: '9223372036854775808' });
  assert.match(String(second.error), /^Error: why\n +at /);
  assert.equal(more.length, 0);
});

test('a key in whatever is logged is hidden, in an address however it was written and also without its end', async () => {
  const { writes, log } = logging();
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
  for (const target of targets) log.access({ target });
  log.access({ target: '/v1/pets?limit=100&after=-9007199254740993000&status=available' });
  log.access({ target: undefined, status: 400 });
  await turn();
  assert.doesNotMatch(writes[0], /aB3|%61|%42/);
  assert.equal(writes[0].match(/\[hidden\]/g)!.length, targets.length + 3);
  const lines = linesOf(writes[0]);
  assert.equal(lines.at(-2)!.target, '/v1/pets?limit=100&after=-9007199254740993000&status=available');
  assert.ok(!('target' in lines.at(-1)!));
});

test('what does not fit is dropped and counted, in order, the newest dropped', async () => {
  const { writes, log, take } = logging();
  log.info('first');
  await turn();
  for (let i = 0; i < 1_500; i++) log.info('x'.repeat(1_000), { i });
  await take();
  await take();
  log.info('last');
  await turn();
  const lines = linesOf(writes.join(''));
  const dropped = lines.at(-2)!.dropped as number;
  assert.ok(dropped > 400 && dropped < 600, String(dropped));
  assert.equal(lines.length, 1 + (1_500 - dropped) + 2);
  assert.equal(lines.at(-3)!.i, 1_500 - dropped - 1);
  assert.equal(lines.at(-1)!.message, 'last');
});

test('the access log has a line a request, with what is needed to find it again', async (t) => {
  const cwd = await temporary(t);
  const server = await serving(t, ['--first-key', 'free', '--access-log', '--trust-proxy', '1'], { cwd });
  const headers = { authorization: `Bearer ${server.key}`, 'x-forwarded-for': '10.0.0.1, 203.0.113.9' };
  const reply = await fetch(`${server.url}/pets?limit=2`, { headers });
  await fetch(`${server.url}/none`, { method: 'POST', body: 'secret body' });
  const { port } = new URL(server.url);
  const unreadable = connect(Number(port), '127.0.0.1').end('no request\r\n\r\n').resume();
  await once(unreadable, 'close');
  const { stderr } = await server.stop();
  const [first, second, third] = linesOf(stderr).filter(({ level }) => level === 'access');
  const { time, ms, ...rest } = first as { time: string; ms: number };
  assert.ok(Math.abs(Date.parse(time) - Date.now()) < 60_000 && ms >= 0 && ms < 10_000);
  const requestId = reply.headers.get('x-request-id');
  const asked = { requestId, method: 'GET', target: '/v1/pets?limit=2', status: 200, key: 'k1' };
  assert.deepEqual(rest, { level: 'access', message: 'request', ...asked, address: '203.0.113.9' });
  assert.deepEqual([second.method, second.status, second.address], ['POST', 401, '127.0.0.1']);
  assert.deepEqual([third.status, third.address, 'target' in third], [400, '127.0.0.1', false]);
  assert.ok(!('key' in second) && !stderr.includes('secret body'));
});

const noScript = spawnSync('script', ['--version']).error && 'there is no script (util-linux) on this machine';
for (const [reader, skip] of [
  ['pipe', false],
  ['terminal', noScript ?? false],
] as const) {
  test(`a ${reader} that nobody reads any more stops no reply, and no shutdown`, { skip }, async (t) => {
    const cwd = await temporary(t);
    const create = 'keys create --plan enterprise --per-minute 1000000 --per-day 1000000 --json';
    const { key } = JSON.parse((await program(create.split(' '), { cwd })).stdout);
    const serve = [...(await command()), 'serve', '--port', '0', '--access-log'];
    const through = ['script', '-qfc', `echo $$ > pid; exec ${serve.join(' ')} > out`, '/dev/null'];
    const [file, ...words] =
      reader === 'pipe' ? ['sh', '-c', `echo $$ > pid; exec "$@" > out`, 'sh', ...serve] : through;
    const child = spawn(file, words, { cwd, stdio: ['ignore', 'pipe', 'pipe'] }); // and neither is read
    const read = (name: string) => readFile(path.join(cwd, name), 'utf8').catch(() => '');
    t.after(async () => child.exitCode === null && process.kill(Number(await read('pid')), 'SIGKILL'));
    let url = '';
    while (url === '') url = /http:\S+/.exec(await read('out'))?.[0] ?? '';
    const agent = new http.Agent({ keepAlive: true, maxSockets: 8 });
    t.after(() => agent.destroy());
    const target = `${url}/pets?${'limit=1'.padEnd(1_500, '-')}`;
    const ask = () =>
      new Promise<void>((resolve, reject) => {
        const request = http.get(target, { agent, headers: { authorization: `Bearer ${key}` } }, (reply) => {
          assert.equal(reply.statusCode, 400);
          reply.resume().on('end', resolve);
        });
        request.on('error', reject);
        request.setTimeout(60_000, () => request.destroy(new Error('no reply')));
      });
    // Each line has some 1,700 bytes: in the kernel's buffers fit some hundreds, in ours some six hundred.
    const asking = async () => {
      for (let i = 0; i < 200; i++) await ask();
    };
    await Promise.all(Array.from({ length: 8 }, asking));
    process.kill(Number(await read('pid')), 'SIGTERM');
    let text = '';
    if (reader === 'pipe') assert.deepEqual(await once(child, 'exit'), [0, null]);
    for await (const chunk of reader === 'pipe' ? child.stderr : child.stdout) text += chunk;
    assert.ok(text.length > 10_000 && text.length < 1_600 * 1_500, `${text.length}: the reader did stop`);
  });
}
