import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { Bench } from '../../bench/bench.ts';
import { type Call, runLoad } from '../../bench/load.ts';
import { load } from '../../bench/loader.ts';
import { ask, mustAnswer } from '../../bench/replies.ts';

let answered = 0;
const server = createServer((request, response) => {
  answered++;
  if (request.url === '/gone') return request.socket.destroy();
  const body = `{"path":"${request.url}"}`;
  const headers = { 'content-type': 'application/json', 'content-length': body.length };
  response.writeHead(request.url === '/wrong' ? 500 : 200, headers).end(body);
});
let origin = '';
before(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
after(() => server.close());

const call = (path: string): Call => ({ method: 'GET', path, headers: {}, status: 200 });

test('a fixed rate sends exactly what it should, and takes the calls in turn', async () => {
  answered = 0;
  const calls = [call('/a'), call('/b')];
  const report = await runLoad({ origin, calls, connections: 4, seconds: 0.2, perSecond: 200 });
  assert.equal(report.requests, 40);
  assert.equal(answered, 40);
  assert.equal(report.wrong, 0);
});

test('a reply with another status is counted as wrong, and so is none at all', async () => {
  const calls = [call('/right'), call('/wrong'), call('/gone'), call('/right')];
  const report = await runLoad({ origin, calls, connections: 4, seconds: 0.2, perSecond: 200 });
  assert.equal(report.wrong, 20);
});

test('at saturation every connection is busy until the time is over', async () => {
  const report = await runLoad({ origin, calls: [call('/a')], connections: 4, seconds: 0.2 });
  assert.ok(report.requests > 4 && report.wrong === 0, JSON.stringify(report));
  assert.ok(report.seconds >= 0.2);
});

test('a load of whole seconds, by wrk where it is installed, fails when replies are wrong', async () => {
  const bench = new Bench({ seconds: 1, soakSeconds: 1, rounds: 1, peers: false, progress: () => {} });
  try {
    const order = { origin, connections: 4, seconds: 1 };
    const report = await load(bench, { ...order, calls: [call('/a'), call('/b')] });
    assert.ok(report.requests > 100 && report.latency.p999 >= report.latency.p50, JSON.stringify(report));
    await assert.rejects(load(bench, { ...order, calls: [call('/a'), call('/wrong')] }), /replies were wrong/);
  } finally {
    await bench.end();
  }
});

test('a reply is looked at before anything is timed', async () => {
  await mustAnswer(origin, call('/a'), (value) => assert.deepEqual(value, { path: '/a' }));
  await assert.rejects(
    mustAnswer(origin, call('/a'), (value) => assert.deepEqual(value, { path: '/b' })),
    /GET \/a/,
  );
  await assert.rejects(mustAnswer(origin, call('/wrong')), /500/);
  const reply = await ask(origin, call('/a'));
  assert.match(reply.raw, /^HTTP\/1\.1 200 OK\r\n/);
  assert.equal(reply.headers.get('content-type'), 'application/json');
});
