/** What an operator sees of a server: its log and its metrics. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { Writable } from 'node:stream';
import { test } from 'node:test';
import { Logger } from '../../src/operator/logging.ts';
import { Metrics } from '../../src/operator/metrics.ts';
import { SetClock } from '../clock.ts';
import { command } from '../program.ts';
import { workplace } from './workplace.ts';

/** More than fit where nobody reads them. */
const REQUESTS = 1_000;
/** Of who asks for the metrics, to send the request. */
const MAX_ASKING_MS = 5_000;

const linesOf = (text: string): Record<string, unknown>[] => Array.from(text.match(/.+/g)!, (line) => JSON.parse(line));
const turn = () => new Promise((resolve) => setImmediate(resolve));

/** `take`: whoever reads takes what was written. */
function logging(wall?: number) {
  const writes: string[] = [];
  let take = () => {};
  const out = new Writable({
    writev: (chunks, done) => {
      writes.push(chunks.map(({ chunk }) => String(chunk)).join(''));
      take = done;
    },
  });
  const clock = new SetClock(wall);
  const log = new Logger({ out, clock });
  return { log, writes, clock, take: () => turn().then(() => take()) };
}

test('a line is one JSON object, those of a turn are one write; a key is hidden, in an address however written', async () => {
  const { writes, log } = logging(Date.UTC(2026, 0, 2, 3, 4, 5, 6));
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
  for (const target of targets) log.access({ target });
  log.access({ target: '/v1/pets?limit=100&after=-9007199254740993000&status=available' });
  log.access({ target: undefined, status: 400 });
  await turn();
  assert.equal(writes.length, 1);
  assert.doesNotMatch(writes[0], /aB3|%61|%42/);
  assert.equal(writes[0].match(/\[hidden\]/g)!.length, targets.length + 3);
  const lines = linesOf(writes[0]);
  const time = '2026-01-02T03:04:05.006Z';
  assert.deepEqual(lines[0], { time, level: 'info', message: 'first', count: 3, big: '9223372036854775808' });
  assert.match(String(lines[1].error), /^Error: ps_test_\[hidden\]\n +at /);
  assert.equal(lines.at(-2)!.target, '/v1/pets?limit=100&after=-9007199254740993000&status=available');
  assert.ok(!('target' in lines.at(-1)!));
});

test('of requests without a key a hundred a second have a line, the others one together; so have the 429s of each key', async () => {
  const { writes, log, clock } = logging();
  const burst = (requests: number, key?: string) => {
    for (let n = 0; n < requests; n++) log.access({ target: '/v1/pets', status: key ? 200 : 401, key });
  };
  const refused = (requests: number, key: string) => {
    for (let n = 0; n < requests; n++) log.access({ target: '/v1/pets', status: 429, key });
  };
  burst(1_000);
  burst(300, 'k1');
  refused(250, 'k2');
  refused(100, 'k3');
  clock.advance(1_000);
  burst(50);
  log.access({ target: `/v1/pets?x=${'y '.repeat(4_000)}`, key: 'k1' });
  clock.advance(1_000);
  burst(101);
  refused(102, 'k2');
  await log.close();
  const lines = linesOf(writes.join(''));
  const [keyless, summed] = [
    lines.filter(({ message, key }) => message === 'request' && key === undefined),
    lines.filter(({ message }) => message === 'requests without a key, summed up'),
  ];
  assert.deepEqual([keyless.length, summed.map(({ requests }) => requests)], [100 + 50 + 100, [900, 1]]);
  assert.equal(lines.filter(({ key }) => key === 'k1').length, 301);
  const of = (key: string) => lines.filter((line) => line.key === key);
  const isSum = ({ message }: Record<string, unknown>) => message === 'requests of a key beyond its limits, summed up';
  assert.deepEqual([of('k2').length, of('k3').length], [100 + 1 + 100 + 1, 100]);
  assert.deepEqual(
    lines.filter(isSum).map(({ key, requests }) => [key, requests]),
    [
      ['k2', 150],
      ['k2', 2],
    ],
  );
  const long = lines.find(({ target }) => String(target).endsWith('…'))!;
  assert.equal(String(long.target).length, 513);
});

test('no control character of others reaches whoever reads a log', async () => {
  const { writes, log } = logging();
  log.access({ target: '/\u009b31m\u202e\u2028\x7f', key: 'k1' });
  log.warn('\x1b[31m', { name: '\u0085\u2066' });
  await log.close();
  assert.doesNotMatch(writes.join(''), /[\0-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]/);
  assert.equal(linesOf(writes.join(''))[0].target, '/\u009b31m\u202e\u2028\x7f', 'and says the same');
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

test('of all lines each is written or counted as dropped, also where the count finds no room beside a line', async () => {
  for (let room = 40; room <= 1_000; room += 40) {
    const { writes, log, take } = logging();
    log.info('first');
    await turn();
    log.info('x'.repeat(room));
    for (let i = 0; i < 1_100; i++) log.info('x'.repeat(1_000));
    log.info('short');
    await take();
    await take();
    log.info('last');
    await turn();
    const lines = linesOf(writes.join(''));
    const counts = lines.flatMap(({ dropped }) => (dropped as number | undefined) ?? []);
    const told = lines.length - counts.length + counts.reduce((sum, one) => sum + one, 0);
    assert.equal(told, 1 + 1 + 1_100 + 2, `${room}: ${counts}`);
  }
});

test('the access log has a line a request, with what is needed to find it again', async (t) => {
  const { serve } = await workplace(t);
  const server = await serve('--first-key free --access-log --trust-proxy 1');
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

const noScript = spawnSync('script', ['--version']).error ? 'there is no script (util-linux) on this machine' : false;
for (const reader of ['pipe', 'terminal']) {
  const options = { skip: reader === 'terminal' && noScript, timeout: 240_000 };
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
    // Each line has some 1,700 bytes: in the kernel's buffers fit some hundreds, in ours some six hundred.
    const asking = async () => {
      for (let i = 0; i < REQUESTS / 8; i++) {
        const reply = await fetch(`${url}/pets?${'limit=1'.padEnd(1_500, '-')}`, { headers });
        assert.equal(reply.status, 400, await reply.text());
      }
    };
    await Promise.all(Array.from({ length: 8 }, asking));
    process.kill(Number(await read('pid')), 'SIGTERM');
    let text = '';
    if (reader === 'pipe') assert.deepEqual(await once(child, 'exit'), [0, null]);
    for await (const chunk of reader === 'pipe' ? child.stderr : child.stdout) text += chunk;
    assert.ok(text.length > 10_000 && text.length < REQUESTS * 1_500, `${text.length}: the reader did stop`);
  });
}

test('the metrics tell what happened, in a form that Prometheus accepts, on a listener that serves nothing else', async (t) => {
  const { run, json, serve } = await workplace(t);
  const server = await serve('--metrics 127.0.0.1:0 --ban-after 2');
  while (!server.stderr().includes('"message":"listening"')) await once(server.process.stderr!, 'data');
  const address = /"metrics":"(http:[^"]+)"/.exec(server.stderr())![1];
  const { key } = await json<{ key: string }>('keys create --plan enterprise --per-minute 3 --per-day 100');
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const ask = async (options = {}) => (await fetch(`${server.url}/pets`, { headers, ...options })).status;
  for (const [status, body] of [[201, '{"name":"Rex","categoryId":1}'], [400, '{}'], [200], [429], [429]])
    assert.equal(await ask(body ? { method: 'POST', body } : {}), status);
  await fetch(`${server.url}/secret-path-of-a-client`);

  const reply = await fetch(address);
  assert.equal(reply.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8');
  const text = await reply.text();
  for (const [name, expected] of Object.entries({
    'petstore_requests_total{route="createPet",status="201"}': 1,
    'petstore_requests_total{route="createPet",status="400"}': 1,
    'petstore_requests_total{route="listPets",status="200"}': 1,
    'petstore_requests_total{route="listPets",status="429"}': 2,
    'petstore_requests_total{route="other",status="401"}': 1,
    'petstore_request_duration_seconds_count{route="listPets"}': 3,
    'petstore_request_duration_seconds_bucket{route="listPets",le="+Inf"}': 3,
    'petstore_requests_counted_together_total{allowance="keyless_network"}': 0,
    'petstore_requests_counted_together_total{allowance="pages_all"}': 0,
    petstore_bans_total: 1,
    petstore_animals: 1,
    petstore_keys: 1,
  }))
    assert.ok(text.includes(`\n${name} ${expected}\n`), `${name} is not ${expected} in\n${text}`);
  assert.match(text, /\npetstore_log_batch_duration_seconds_sum \S*[1-9]/);
  assert.match(text, /\npetstore_event_loop_delay_max_seconds \S*[1-9]/);
  const valueIn = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)![1]);
  const [cpu, began] = [valueIn('process_cpu_seconds_total'), valueIn('process_start_time_seconds')];
  assert.ok(cpu > 0.01 && cpu < 100, `${cpu} s`);
  assert.ok(Math.abs(Date.now() / 1_000 - began) < 600, `${began}`);
  assert.ok(!text.includes('secret-path'), 'what a client chose is no label');

  for (const [where, method, status] of [
    [address, 'HEAD', 200],
    [address, 'POST', 404],
    [address, 'DELETE', 404],
    [new URL('/v1/pets', address), 'GET', 404],
    [new URL('/metrics', server.url), 'GET', 404],
  ] as const) {
    const other = await fetch(where, { method });
    assert.equal(other.status, status, `${method} ${where}`);
    if (method === 'HEAD') assert.ok(Number(other.headers.get('content-length')) > 1_000);
  }
  const { host } = new URL(address);
  const taken = await run(`serve --port 0 --data other --metrics ${host}`);
  assert.deepEqual([taken.exit, taken.stderr.includes(`${host} is in use`)], [1, true]);
  assert.equal((await server.stop()).exit, 0);

  const { error, status, output } = spawnSync('promtool', ['check', 'metrics'], { input: text, encoding: 'utf8' });
  if (error) return t.diagnostic('not checked with promtool, which is not on this machine (Debian: prometheus)');
  assert.deepEqual([status, output.join('')], [0, '']);
});

const nothing = { connections: { refused: {}, open: new Set() }, gate: { countedTogether: {} } };

test('a delay of the event loop is told once', async () => {
  const metrics = new Metrics();
  const delay = () => metrics.figures(nothing as unknown as Parameters<Metrics['figures']>[0]).loopDelay;
  // Node looks at the loop every 10 ms, and counts from its first look on.
  const looked = () => new Promise((resolve) => setTimeout(resolve, 30));
  await looked();
  for (const began = performance.now(); performance.now() - began < 50; );
  await looked();
  assert.ok(delay() > 0.02);
  assert.ok(delay() < 0.02);
  let least = Number.POSITIVE_INFINITY;
  for (let tries = 0; tries < 200 && least > 0.005; tries++) {
    await looked();
    least = Math.min(least, delay() || least); // 0: nothing was seen
  }
  assert.ok(least <= 0.005, `a loop that nothing holds up is told as ${least} s late`);
});

test('who asks for the metrics has one request at a time, and five seconds to send it; others are told them meanwhile', async (t) => {
  const { serve } = await workplace(t);
  const server = await serve('--metrics 127.0.0.1:0');
  while (!server.stderr().includes('"message":"listening"')) await once(server.process.stderr!, 'data');
  const address = new URL(/"metrics":"(http:[^"]+)"/.exec(server.stderr())![1]);
  const request = 'GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n';
  /** What comes until the connection ends, and after how long. */
  const asked = async (bytes: string) => {
    const began = performance.now();
    const socket = connect(Number(address.port), '127.0.0.1').setEncoding('latin1');
    socket.on('error', () => {}).write(bytes);
    let text = '';
    socket.on('data', (more) => (text += more));
    await once(socket, 'close');
    return { replies: text.match(/^HTTP\/1\.1 200/gm)?.length ?? 0, ms: performance.now() - began };
  };
  const dripping = Array.from({ length: 15 }, () => asked(request.slice(0, -2)));
  const flood = asked(request.repeat(65_536 / request.length));
  const { replies } = await flood;
  assert.ok(replies <= 1, `${replies} replies to requests that were sent at once`);
  assert.equal((await fetch(address)).status, 200);
  for (const { ms } of await Promise.all(dripping))
    assert.ok(ms > 0.9 * MAX_ASKING_MS && ms < 8 * MAX_ASKING_MS, `${ms} ms`);
});
