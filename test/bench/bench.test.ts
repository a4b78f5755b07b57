/** The load generator against real servers, and what is made of the numbers. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, test } from 'node:test';
import { Bench } from '../../bench/bench.ts';
import { contest } from '../../bench/contest.ts';
import { perform, type Report, replyLength } from '../../bench/generator.ts';
import { cpuSeconds, describeMachine } from '../../bench/machine.ts';
import { intervalText, quantile, spread, spreadText } from '../../bench/numbers.ts';
import { PATH_NAMES } from '../../bench/paths.ts';
import type { Results } from '../../bench/results.ts';
import { asText, sentence } from '../../bench/text.ts';

const bench = new Bench({ rounds: 1, peers: false, thorough: false });
after(() => bench.end());

/** What the load generator reports of a server of this process; by default it runs in a process of its own. */
async function load(listener: RequestListener, perSecond?: number, isHere = false) {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const at = { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, pid: process.pid };
  const body = '{"name":"Rex"}';
  const file = bench.jsonFile('requests', [
    { method: 'GET', path: '/a', headers: { Authorization: 'Bearer x' }, status: 200 },
    { method: 'POST', path: '/b', headers: {}, body, status: 201 },
  ]);
  const wanted = { file, connections: 4, seconds: 0.2, perSecond };
  try {
    return await (isHere ? perform({ ...at, ...wanted }) : bench.load(at, wanted));
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

const answer: RequestListener = ({ method }, response) => {
  response.writeHead(method === 'POST' ? 201 : 200, { 'Content-Length': 0 }).end();
};

const quantilesOf = ({ latency }: Report) => [0.5, 0.99].map((share) => quantile(latency!.all, share));

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
  assert.equal(report.requests, all);
  assert.ok(Math.abs(seen.GET - seen.POST) <= 4);
  if (process.platform === 'linux') assert.ok(report.cpuSeconds! > 0);
});

test('at a fixed rate as many are sent as are due, each timed', async () => {
  const report = await load(answer, 200);
  assert.equal(report.requests, 40);
  const [p50, p99] = quantilesOf(report);
  assert.ok(p50 > 0 && p99 >= p50);
});

test('a wrong status and a closed connection end the load, at saturation and at a rate', async () => {
  const status: RequestListener = (_request, response) => response.writeHead(200, { 'Content-Length': 0 }).end();
  const closed: RequestListener = (request) => request.socket.destroy();
  const closedLater: RequestListener = (request, response) => {
    answer(request, response);
    setTimeout(() => request.socket.destroy(), 20);
  };
  for (const perSecond of [undefined, 100]) {
    await assert.rejects(load(status, perSecond), /expected 201/);
    for (const one of [closed, closedLater]) {
      await assert.rejects(load(one, perSecond), /closed a connection|ECONNRESET/);
    }
  }
});

test('a reply is as long as its head announces', () => {
  assert.equal(replyLength('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n'), undefined);
  assert.equal(replyLength('HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhe'), 43);
  assert.throws(() => replyLength('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'), /without Content-Length/);
});

test('a server that stalls is charged for all that fell due meanwhile', async () => {
  let until: number | undefined;
  const stalled: RequestListener = (request, response) => {
    until ??= performance.now() + 150;
    setTimeout(() => answer(request, response), Math.max(0, until - performance.now()));
  };
  // 30 of 40 fell due in the stall. Who sends only when a connection is free would count 4, and none would be late.
  const report = await load(stalled, 200);
  const [p50, p99] = quantilesOf(report);
  assert.ok(p50 > 30 && p99 > 120, `${p50}, ${p99}, ${report.latency!.late}`);
});

test('a generator that is held up itself says so, and charges the wait to the latency', async () => {
  let requests = 0;
  const busy: RequestListener = (request, response) => {
    if (++requests === 5) for (const until = performance.now() + 150; performance.now() < until; );
    answer(request, response);
  };
  const report = await load(busy, 200, true);
  const [, p99] = quantilesOf(report);
  const { late } = report.latency!;
  assert.ok(late > 100 && p99 > 100, `${late}, ${p99}`);
});

test('a median has the interval that holds the true one with 95 %, and is noisy where that is wide', () => {
  // Of nine rounds all lie on one side of the true median but one, or all, in 20 of 512 cases: 4 %.
  assert.deepEqual(spread([50, 49, 53, 51, 52, 48, 47, 54, 55]), { median: 51, low: 48, high: 54, tooNoisy: true });
  assert.deepEqual(spread([1, 100, 101, 102, 103, 104, 105, 106, 900]), {
    ...{ median: 103, low: 100, high: 106, tooNoisy: false },
  });
  // Of few rounds it is the lowest and the highest.
  assert.deepEqual(spread([1, 2, 3, 4, 5]), { median: 3, low: 1, high: 5, tooNoisy: true });
  assert.deepEqual(spread([7]), { median: 7, low: 7, high: 7, tooNoisy: false });
  assert.equal(spreadText(spread([1, 2, 3, 4, 5]), 0), 'noisy 1–5');
  assert.equal(intervalText(spread([1.95, 2, 2.05]), 2), '2.00 (1.95–2.05)');
  assert.ok(spread([]).tooNoisy);
  assert.equal(spreadText(spread([]), 2), '–');
});

test('more rounds narrow the interval', () => {
  const rounds = Array.from({ length: 36 }, (_, i) => 100 + ((i * 7) % 36) - 17.5);
  assert.ok(spread(rounds.slice(0, 9)).tooNoisy);
  assert.ok(!spread(rounds.map((value) => 100 + (value - 100) / 2)).tooNoisy);
});

/** Each load lasts one moment of a machine that slows down to a third, and is disturbed in one moment. */
class SlowingBench extends Bench {
  moment = 0;

  override async load({ pid: speed }: { pid: number }): Promise<Report> {
    const pace = (1 - this.moment / 90) * (this.moment === 30 ? 0.2 : 1);
    this.moment++;
    const latency = { late: 0.6, all: [1] };
    return { requests: speed * pace, seconds: 1, cpuSeconds: 1, busy: 0.5, latency };
  }
}

test('what slows all servers down alike, or disturbs one round, moves no ratio', async () => {
  const slowing = new SlowingBench({ rounds: 9, peers: false, thorough: false });
  const subjects = Object.entries({ petstore: 30_000, twice: 60_000, third: 10_000, same: 30_000 });
  await contest(
    slowing,
    { path: 'list', connections: 1 },
    subjects.map(([name, pid]) => ({ name, file: '', server: { pid, origin: '', stop: async () => {} } })),
  );
  await slowing.end();
  const [own, ...others] = slowing.results.rows;
  assert.ok(own.perSecond.tooNoisy, 'the machine had two thirds of the pace less at the end');
  assert.deepEqual(
    others.map(({ service }) => intervalText(service?.throughput, 3)),
    ['0.500 (0.500–0.500)', '3.000 (3.000–3.000)', '1.000 (1.000–1.000)'],
  );
  assert.deepEqual(others[0].service?.cpu, others[0].service?.throughput);
  assert.ok(own.latency?.isAtMost, 'most of the latency was the delay of the generator');
});

/** Of five rounds one has a stall. */
class StallingBench extends Bench {
  round = 0;

  override async load(): Promise<Report> {
    const stalled = this.round++ % 5 === 0 ? 50 : 0;
    const all = Array.from({ length: 200 }, (_, request) => (request < stalled ? 40 : 1));
    const latency = { late: 0, all };
    return { requests: 30_000, seconds: 1, cpuSeconds: 1, busy: 0.5, latency };
  }
}

test('a stall in one round of five shows at p99', async () => {
  const stalling = new StallingBench({ rounds: 10, peers: false, thorough: false });
  const server = { pid: 1, origin: '', stop: async () => {} };
  await contest(stalling, { path: 'list', connections: 1 }, [{ name: 'petstore', file: '', server }]);
  await stalling.end();
  const [{ latency }] = stalling.results.rows;
  assert.deepEqual([latency?.p50.median, latency?.p99.median], [1, 40]);
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
  cpuRatio?: number[];
  isAtMost?: boolean;
}

function results({ rate = [12_000], cpuRatio = [0.5], isAtMost = false }: Measured = {}): Results {
  const latency = { perSecond: 1_000, p50: spread([0.2]), p99: spread([1.234]), isAtMost };
  const row = { path: 'list, pages at random', perSecond: spread(rate), loadIsLimit: false };
  const service = { throughput: spread([0.4]), cpu: spread(cpuRatio) };
  return {
    machine: describeMachine(undefined),
    rows: [
      { ...row, subject: 'petstore', cpuMicros: spread([50]), latency },
      { ...row, subject: 'bare node:http', perSecond: spread([24_000]), cpuMicros: spread([25]), service },
      { ...row, subject: 'Fastify 5', perSecond: spread([8_000]), service, leavesOut: 'keys' },
      { ...row, path: 'create, durable', subject: 'petstore' },
    ],
    figures: [{ path: 'start on 1,000,000 animals', against: 'an empty store', more: 0.5, unit: 's' }],
  };
}

const NOISY = [0.2, 0.5, 0.9];

test('the result stands in one sentence and one table, what was measured before what it is compared with', () => {
  assert.equal(
    sentence(results()),
    'petstore (list, pages at random): 12,000 requests a second; ' +
      'half of the replies within 0.20 ms at 1,000 requests a second; 99 of 100 within 1.23 ms at 1,000 requests a second; ' +
      '50.0 µs of CPU time a request; 0.50 times as fast as bare node:http with the same bytes, by CPU time; ' +
      '12,000 animals added a second, each synced before its reply.',
  );
  const text = asText(results());
  assert.match(text, /\| list, pages at random \| +12,000 \| +0\.20 \| +50\.0 \| +0\.50 \|\n/);
  assert.match(text, /\| list, pages at random \| bare node:http +\| +24,000 \| .+ 0\.50 \(0\.50–0\.50\) \| +0\.40/);
  assert.match(text, /\| list, pages at random \| Fastify 5 +\| +8,000 \| +– \| .+ \| +0\.50 .+\| keys/);
  assert.match(text, /\| start on 1,000,000 animals \| an empty store \| \+0\.5 s \|/);
  assert.match(text, /\|\n\n.+, Node v.+; load average before: \d+\.\d\d\n/);
});

test('a figure that is too noisy is claimed nowhere, and stands with its range among all figures', () => {
  assert.match(asText(results({ isAtMost: true })), /within ≤ 1\.23 ms.+\| ≤ 1\.23 \|/s);
  const noisy = results({ rate: [5_000, 12_000, 13_000], cpuRatio: NOISY });
  assert.equal(
    sentence(noisy),
    'petstore (list, pages at random): half of the replies within 0.20 ms at 1,000 requests a second; ' +
      '99 of 100 within 1.23 ms at 1,000 requests a second; 50.0 µs of CPU time a request.',
  );
  assert.match(asText(noisy), /\| list, pages at random \| +– \| +0\.20 \| +50\.0 \| +– \|\n/);
  assert.match(asText(noisy), /petstore +\| noisy 5,000–13,000 .+\n.+ noisy 0\.20–0\.90/);
  assert.match(asText(noisy), /Fastify 5 .+ noisy 0\.20–0\.90/);
  assert.match(JSON.stringify(noisy), /"cpu":{"median":0.5,"low":0.2,"high":0.9,"tooNoisy":true}/);
});

test('README and docs/performance.md name the rows as the bench does', () => {
  for (const name of ['README.md', 'docs/performance.md']) {
    const text = readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8');
    const [, rows] = /^\| +\| *requests\/s .*\n\|[-:|]+\n((?:\|.*\n)+)/m.exec(text) ?? [];
    assert.ok(rows !== undefined, `${name} has the table of results`);
    for (const [, row] of rows.matchAll(/^\| (.+?) +\|/gm)) assert.ok(PATH_NAMES.includes(row), `${name}: ${row}`);
  }
});
