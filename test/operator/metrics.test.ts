import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { Metrics } from '../../src/operator/metrics.ts';
import { freePort, program, type Serving, serving, temporary } from '../program.ts';

const promtool = spawnSync('promtool', ['--version']).error === undefined;

/** Where the metrics are: the port that was picked is told in the log. */
async function metricsOf(server: Serving): Promise<string> {
  while (!server.stderr().includes('"message":"listening"')) await once(server.process.stderr!, 'data');
  return /"metrics":"(http:[^"]+)"/.exec(server.stderr())![1];
}

test('the metrics tell what happened, in a form that Prometheus accepts', async (t) => {
  const cwd = await temporary(t);
  const server = await serving(t, ['--metrics', '127.0.0.1:0', '--ban-after', '2'], { cwd });
  const address = await metricsOf(server);
  const words = 'keys create --plan enterprise --per-minute 3 --per-day 100 --json';
  const { key } = JSON.parse((await program(words.split(' '), { cwd })).stdout);
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const ask = (options = {}) => fetch(`${server.url}/pets`, { headers, ...options });
  const statuses = [];
  for (const body of ['{"name":"Rex","categoryId":1}', '{}'])
    statuses.push((await ask({ method: 'POST', body })).status);
  for (let i = 0; i < 3; i++) statuses.push((await ask()).status);
  assert.deepEqual(statuses, [201, 400, 200, 429, 429]);
  await fetch(`${server.url}/secret-path-of-a-client`);
  const reply = await fetch(address);
  assert.equal(reply.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8');
  let text = await reply.text();
  // Usage is written once a second, and bans are counted then.
  for (; !text.includes('petstore_bans_total 1\n'); text = await (await fetch(address)).text()) await wait(100);
  const value = (name: string) => {
    const line = text.split('\n').find((one) => one.startsWith(`${name} `));
    assert.ok(line !== undefined, `${name} is missing in\n${text}`);
    return Number(line.split(' ').at(-1));
  };
  assert.equal(value('petstore_requests_total{route="createPet",status="201"}'), 1);
  assert.equal(value('petstore_requests_total{route="createPet",status="400"}'), 1);
  assert.equal(value('petstore_requests_total{route="listPets",status="200"}'), 1);
  assert.equal(value('petstore_requests_total{route="listPets",status="429"}'), 2);
  assert.equal(value('petstore_requests_total{route="other",status="401"}'), 1);
  assert.ok(!text.includes('secret-path'), 'what a client chose is no label');
  assert.equal(value('petstore_bans_total'), 1);
  assert.equal(value('petstore_animals'), 1);
  assert.equal(value('petstore_keys'), 1);
  assert.equal(value('petstore_request_duration_seconds_count{route="listPets"}'), 3);
  assert.equal(value('petstore_request_duration_seconds_bucket{route="listPets",le="+Inf"}'), 3);
  assert.ok(value('petstore_log_batch_duration_seconds_sum') > 0);
  assert.ok(value('process_resident_memory_bytes') > 10e6);
  assert.ok(value('petstore_event_loop_delay_max_seconds') > 0);

  if (!promtool) return t.diagnostic('not checked with promtool, which is not on this machine (Debian: prometheus)');
  const checked = spawnSync('promtool', ['check', 'metrics'], { input: text, encoding: 'utf8' });
  assert.deepEqual([checked.status, checked.stdout + checked.stderr], [0, '']);
});

test('the listener of the metrics serves nothing else, and the API serves no metrics', async (t) => {
  const cwd = await temporary(t);
  const address = `127.0.0.1:${await freePort()}`;
  const server = await serving(t, ['--metrics', address, '--first-key', 'free'], { cwd });
  assert.equal((await fetch(`http://${address}/v1/pets`)).status, 404);
  assert.equal((await fetch(`http://${address}/metrics`, { method: 'POST' })).status, 404);
  assert.equal((await fetch(new URL('/metrics', server.url))).status, 404);
  const head = await fetch(`http://${address}/metrics`, { method: 'HEAD' });
  assert.deepEqual(
    [head.status, Number(head.headers.get('content-length')) > 1_000, await head.text()],
    [200, true, ''],
  );
  const taken = await program(['serve', '--port', '0', '--data', 'other', '--metrics', address], { cwd });
  assert.equal(taken.exit, 1);
  assert.match(taken.stderr, new RegExp(`${address} is in use`));
  assert.equal((await server.stop()).exit, 0);
});

test('counting a reply costs less than a microsecond', () => {
  const metrics = new Metrics();
  const best = Math.min(
    ...Array.from({ length: 5 }, () => {
      const before = process.cpuUsage();
      for (let i = 0; i < 100_000; i++) metrics.replied(i % 3 === 0 ? 'listPets' : 'createPet', 200, i % 50);
      return process.cpuUsage(before).user / 100_000;
    }),
  );
  assert.ok(best < 1, `${best} microseconds`);
});
