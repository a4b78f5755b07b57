/** The load generator against real servers, its pace on time that is set, and what is made of the numbers. */
import assert from 'node:assert/strict';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, test } from 'node:test';
import { isReached } from '../../bench/aims.ts';
import { Bench } from '../../bench/bench.ts';
import { Latencies, replyLength, sendAtPace } from '../../bench/generator.ts';
import { cpuSeconds, describeMachine } from '../../bench/machine.ts';
import { isNoisy, ratios, ratioText, spread } from '../../bench/numbers.ts';
import { asPage } from '../../bench/page.ts';
import type { Results } from '../../bench/results.ts';
import { asMarkdown, asText, sentence } from '../../bench/text.ts';

const bench = new Bench({ rounds: 1, seconds: 0.2, peers: false, thorough: false, progress: () => {} });
after(() => bench.end());

/** What the load generator reports of a server of this test. */
async function load(listener: RequestListener, perSecond?: number) {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const body = '{"name":"Rex"}';
  const file = bench.requestFile([
    { method: 'GET', path: '/a', headers: { Authorization: 'Bearer x' }, status: 200 },
    { method: 'POST', path: '/b', headers: {}, body, status: 201 },
  ]);
  try {
    return await bench.load({ origin, pid: process.pid, file, connections: 4, seconds: 0.2, perSecond });
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

test('the load generator sends its requests in turn and counts each reply once, also one that comes in pieces', async () => {
  const seen = { GET: 0, POST: 0 };
  const report = await load(async (request, response) => {
    const body = (await request.toArray()).join('');
    const isPost = request.method === 'POST';
    seen[isPost ? 'POST' : 'GET']++;
    assert.equal(isPost ? body : request.headers.authorization, isPost ? '{"name":"Rex"}' : 'Bearer x');
    response.writeHead(isPost ? 201 : 200, { 'Content-Length': 200_000 });
    response.write('a'.repeat(100_000), () => setImmediate(() => response.end('b'.repeat(100_000))));
  });
  assert.ok(report.requests > 0);
  const all = seen.GET + seen.POST;
  assert.ok(all >= report.requests && all <= report.requests + 4, `${report.requests} counted, ${all} sent`);
  assert.ok(Math.abs(seen.GET - seen.POST) <= 4);
  if (process.platform === 'linux') assert.ok(report.cpuSeconds! > 0);
});

test('at a fixed rate as many are sent as are due, each timed', async () => {
  const report = await load(
    (request, response) => response.writeHead(request.method === 'POST' ? 201 : 200).end(),
    200,
  );
  assert.equal(report.requests, 40);
  assert.ok(report.latency!.p50 > 0 && report.latency!.p99 >= report.latency!.p50);
});

test('a wrong status ends the load, at saturation and at a rate', async () => {
  for (const perSecond of [undefined, 200]) {
    await assert.rejects(
      load((_request, response) => response.writeHead(200, { 'Content-Length': 0 }).end(), perSecond),
      /replies were wrong/,
    );
  }
});

test('a reply is as long as its head announces', () => {
  assert.equal(replyLength('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n'), undefined);
  assert.equal(replyLength('HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhe'), 43);
  assert.equal(replyLength('HTTP/1.1 304 Not Modified\r\nETag: "a"\r\n\r\n'), 40);
  assert.throws(() => replyLength('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'), /without Content-Length/);
});

/** `sendAtPace` on a clock that moves when it pauses; the server answers what it is sent at `answeredAt`. */
async function paced(perSecond: number, requests: number, answeredAt: (now: number) => number, slip = 0) {
  let now = 0;
  const waiting: { at: number; answered: () => void }[] = [];
  const passUntil = (until: number) => {
    for (const reply of waiting.filter(({ at }) => at <= until).sort((a, b) => a.at - b.at)) {
      now = Math.max(now, reply.at);
      waiting.splice(waiting.indexOf(reply), 1);
      reply.answered();
    }
    now = Math.max(now, until);
  };
  const [latency, late] = [new Latencies(), new Latencies()];
  const pause = async (until: number) => passUntil(until === 500 ? until + slip : until);
  const send = (_index: number, answered: () => void) => waiting.push({ at: answeredAt(now), answered });
  await sendAtPace({ perSecond, requests, now: () => now, pause, send, latency, late });
  passUntil(60_000);
  return { latency, late };
}

test('a server that stalls is charged for all that fell due meanwhile', async () => {
  let free = 0;
  const stalled = (now: number) => {
    free = Math.max(free, now) + 1;
    if (free > 1_000 && free < 1_500) free = 1_500;
    return free;
  };
  const { latency, late } = await paced(100, 300, stalled);
  assert.ok(late.percentile(100) <= 0.001);
  // A sender that waits for each reply would have met the stall once in 300: its p99 would be 1 ms.
  const [p50, p90, p99] = [50, 90, 99].map((percent) => latency.percentile(percent));
  assert.ok(p50 <= 1.1 && p90 > 150 && p99 > 450, `${p50}, ${p90}, ${p99}`);
});

test('a generator that is held up itself says so, and charges the wait to the latency', async () => {
  const { latency, late } = await paced(10, 10, (now) => now, 200);
  for (const one of [latency, late]) assert.ok(Math.abs(one.percentile(100) - 200) < 0.5);
});

test('quartiles and ratios by round; what they contradict is too noisy, whichever way it points', () => {
  assert.deepEqual(spread([5, 1, 3, 2, 4]), { median: 3, low: 2, high: 4 });
  assert.deepEqual(ratios([100, 10, 50], [50, 5, 25]), { median: 2, low: 2, high: 2 });
  assert.ok(Number.isNaN(spread([]).median));
  assert.equal(ratioText({ median: 2, low: 1.9, high: 2.1 }), '2.00');
  for (const median of [0.5, 5]) {
    assert.equal(ratioText({ median, low: 0.4, high: 6 }), 'too noisy (0.40 to 6.00)');
  }
  assert.ok(isNoisy(spread([])));
  const aim = { path: '', against: '', aim: 2 };
  assert.deepEqual([isReached(aim, spread([2])), isReached({ ...aim, atMost: true }, spread([2.1]))], [true, false]);
});

test('the CPU time of a process is that which the process itself reports', {
  skip: process.platform !== 'linux' && 'no /proc',
}, () => {
  for (const until = performance.now() + 100; performance.now() < until; );
  const { user, system } = process.cpuUsage();
  const own = (user + system) / 1e6;
  assert.ok(Math.abs(cpuSeconds(process.pid)! - own) < 0.1 + own / 10, `${cpuSeconds(process.pid)} of ${own}`);
});

function results(ratio: number[]): Results {
  const [path, part] = ['list, pages at random', 'list'] as const;
  const latency = { perSecond: 1_000, p50: 0.2, p99: 1.234, max: 3, isAtMost: false };
  const row = { part, path, connections: 32, perSecond: spread([12_000]), loadIsLimit: false };
  const rows = [
    { ...row, subject: 'petstore', cpuMicros: spread([50]), latency },
    { ...row, subject: 'bare node:http' },
  ];
  const ratios = [{ part, path, against: 'bare node:http', throughput: spread(ratio), loadIsLimit: false }];
  const value = spread([0.5]);
  const figures = [
    { part: 'scale' as const, path: 'start on 1,000,000 animals', against: 'cat of the file', value, unit: 's' },
  ];
  return {
    machine: describeMachine(undefined),
    rows,
    ratios,
    figures,
    leftOut: {},
    notes: ['<script>alert(1)</script>'],
  };
}

test('the result stands in one sentence and one table; a system without CPU times leaves that column empty', () => {
  assert.match(
    sentence(results([0.5])),
    /12,000 requests a second \(.+\), which is 0\.50 of .+ 99 of 100 within 1\.23 ms/,
  );
  assert.match(sentence(results([0.2, 0.5, 0.9])), /too noisy to compare/);
  const text = asText(results([0.5]), false);
  assert.match(text, /list, pages at random +12,000 +0\.20 +1\.23 +50\.0 +0\.50 +–/);
  assert.match(asText(results([0.5]), true), /bare node:http +32 +12,000/);
  assert.match(
    asMarkdown(results([0.5])),
    /\| list, pages at random \| bare node:http \| ≥ 0\.85 \| ≥ 1 \| 0\.50 \*\*missed\*\*/,
  );
  assert.match(asMarkdown(results([0.2, 0.5, 0.9])), /too noisy \(0\.35 to 0\.70\) \|/);
  assert.match(asMarkdown(results([0.5])), /≤ 2\.5 \| ≤ 1 \| \+0\.50 s \|/);
});

test('the page stands alone, lets nothing through as markup, and gives each subject one bar', () => {
  const page = asPage(results([0.5]));
  assert.doesNotMatch(page, /<script|<link|src=|url\(|NaN|undefined|Infinity/);
  assert.equal(page.match(/class="own"/g)?.length, 3);
  assert.equal(page.match(/class="bare"/g)?.length, 1);
});
