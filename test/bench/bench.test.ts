/** The load generator against real servers, its pace on time that is set, and what is made of the numbers. */
import assert from 'node:assert/strict';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, test } from 'node:test';
import { Bench } from '../../bench/bench.ts';
import { replyLength, sendAtPace } from '../../bench/generator.ts';
import { cpuSeconds, describeMachine } from '../../bench/machine.ts';
import { quantile, ratios, spread, spreadText } from '../../bench/numbers.ts';
import { asPage } from '../../bench/page.ts';
import type { Results, Row } from '../../bench/results.ts';
import { asText, sentence } from '../../bench/text.ts';

const bench = new Bench({ rounds: 1, seconds: 0.2, peers: false, thorough: false });
after(() => bench.end());

/** What the load generator reports of a server of this test. */
async function load(listener: RequestListener, perSecond?: number) {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const body = '{"name":"Rex"}';
  const file = bench.jsonFile('requests', [
    { method: 'GET', path: '/a', headers: { Authorization: 'Bearer x' }, status: 200 },
    { method: 'POST', path: '/b', headers: {}, body, status: 201 },
  ]);
  try {
    return await bench.load({ origin, pid: process.pid }, { file, connections: 4, seconds: 0.2, perSecond });
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
  const pause = async (until: number) => passUntil(until === 500 ? until + slip : until);
  const send = (_index: number, answered: () => void) => waiting.push({ at: answeredAt(now), answered });
  const { latencies, lateness } = await sendAtPace({ perSecond, requests, now: () => now, pause, send });
  passUntil(60_000);
  return { latencies, lateness };
}

test('a server that stalls is charged for all that fell due meanwhile', async () => {
  let free = 0;
  const stalled = (now: number) => {
    free = Math.max(free, now) + 1;
    if (free > 1_000 && free < 1_500) free = 1_500;
    return free;
  };
  const { latencies, lateness } = await paced(100, 300, stalled);
  assert.equal(Math.max(...lateness), 0);
  // A sender that waits for each reply would have met the stall once in 300: its p99 would be 1 ms.
  const [p50, p90, p99] = [0.5, 0.9, 0.99].map((share) => quantile(latencies, share));
  assert.ok(p50 <= 1.1 && p90 > 150 && p99 > 450, `${p50}, ${p90}, ${p99}`);
});

test('a generator that is held up itself says so, and charges the wait to the latency', async () => {
  const { latencies, lateness } = await paced(10, 10, (now) => now, 200);
  for (const one of [latencies, lateness]) assert.equal(Math.max(...one), 200);
});

test('quartiles and ratios by round; where they lie wide apart it is too noisy, whichever way it points', () => {
  assert.deepEqual(spread([50, 49, 53, 51, 52]), { median: 51, low: 50, high: 52, tooNoisy: false });
  assert.deepEqual(ratios([100, 10, 50], [50, 5, 25]), { median: 2, low: 2, high: 2, tooNoisy: false });
  assert.equal(spreadText(spread([1.95, 2, 2.05]), 2), '2.00');
  for (const median of [0.5, 5]) {
    const { tooNoisy, ...noisy } = spread([0.2, median, 6]);
    assert.ok(tooNoisy);
    assert.equal(
      spreadText({ tooNoisy, ...noisy }, 2),
      `noisy ${((0.2 + median) / 2).toFixed(2)}–${(3 + median / 2).toFixed(2)}`,
    );
  }
  assert.ok(spread([]).tooNoisy);
  assert.equal(spreadText(spread([]), 2), '–');
});

test('the CPU time of a process is that which the process itself reports', {
  skip: process.platform !== 'linux' && 'no /proc',
}, () => {
  for (const until = performance.now() + 100; performance.now() < until; );
  const { user, system } = process.cpuUsage();
  const own = (user + system) / 1e6;
  assert.ok(Math.abs(cpuSeconds(process.pid)! - own) < 0.1 + own / 10, `${cpuSeconds(process.pid)} of ${own}`);
});

interface Measured {
  rate?: number[];
  ratio?: number[];
  cpuRatio?: number[];
  isAtMost?: boolean;
}

function results({ rate = [12_000], ratio = [0.5], cpuRatio, isAtMost = false }: Measured = {}): Results {
  const latency = { perSecond: 1_000, p50: 0.2, p99: 1.234, max: 3, isAtMost };
  const perSecond = spread(rate);
  const row: Omit<Row, 'subject'> = {
    ...({ part: 'list', path: 'list, pages at random' } as const),
    ...{ connections: 32, perSecond, loadIsLimit: false },
  };
  const service = { throughput: spread(ratio), cpu: cpuRatio && spread(cpuRatio) };
  const create = { ...row, part: 'create' as const, path: 'create, durable', subject: 'petstore' };
  return {
    machine: describeMachine(undefined),
    rows: [
      { ...row, subject: 'petstore', cpuMicros: spread([50]), latency },
      { ...row, subject: 'bare node:http', perSecond: spread([24_000]), latency, service },
      { ...row, subject: 'Fastify 5', perSecond: spread([8_000]), service, leavesOut: 'keys' },
      create,
    ],
    figures: [{ path: 'start on 1,000,000 animals', against: 'cat of the file', value: spread([0.5]), unit: 's' }],
    notes: ['<script>alert(1)</script>'],
  };
}

const NOISY = [0.2, 0.5, 0.9];

test('the result stands in one sentence and one table; a system without CPU times leaves that column empty', () => {
  assert.match(
    sentence(results()),
    /^petstore answered 12,000 .+; it did 0\.50 of .+; it answered 99 of 100 within 1\.23 ms .+; it added 12,000 animals [^.]+\.$/,
  );
  const text = asText(results(), false);
  assert.match(text, /list, pages at random +12,000 +0\.20 +1\.23 +50\.0 +0\.50 +–/);
  assert.match(text, /list, pages at random +Fastify 5 +0\.50 +– +keys/);
  assert.match(text, /start on 1,000,000 animals +cat of the file +\+0\.50 s/);
  assert.doesNotMatch(text, /noisy|≤|≥/);
  assert.match(asText(results(), true), /bare node:http +32 +24,000 \(24,000–24,000\)/);
});

test('a figure that is too noisy is claimed nowhere: not in the sentence, the table, the page or the JSON', () => {
  assert.match(sentence(results({ ratio: NOISY })), /reply\. Too noisy to say: the ratio to bare node:http\.$/);
  assert.match(sentence(results({ ratio: NOISY, cpuRatio: [0.7] })), /it did 0\.70 of .+ by CPU time;/);
  assert.match(sentence(results({ ratio: NOISY, cpuRatio: NOISY })), /Too noisy to say: the ratio/);
  assert.doesNotMatch(sentence(results({ isAtMost: true })), /within/);
  const noisy = results({ rate: [5_000, 12_000, 13_000], ratio: NOISY });
  assert.match(sentence(noisy), /^Too noisy to say: requests a second \(.+\); the ratio .+; animals added a second\.$/);
  assert.match(asText(noisy, false), /list, pages at random +noisy 8,500–12,500 .+ noisy 0\.35–0\.70/);
  assert.match(asText(noisy, false), /Fastify 5 +noisy 0\.35–0\.70/);
  assert.match(JSON.stringify(noisy), /"throughput":{"median":0.5,"low":0.35,"high":0.7,"tooNoisy":true}/);
  assert.match(asPage(noisy), /class="range own" style="margin-left:35.42%;width:16.67%"/);
});

test('the page stands alone, lets nothing through as markup, and gives each subject one bar', () => {
  const page = asPage(results());
  assert.doesNotMatch(page, /<script|<link|src=|url\(|NaN|undefined|Infinity/);
  assert.equal(page.match(/class="value own"/g)?.length, 2);
  assert.equal(page.match(/class="value bare"/g)?.length, 2);
  assert.doesNotMatch(page, /class="range/);
  assert.match(asPage(results({ isAtMost: true })), /class="range own" style="margin-left:0.00%;width:100.00%"/);
});
