import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
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
  const text = await reply.text();
  const value = (name: string) => {
    const line = text.split('\n').find((one) => one.startsWith(`${name} `));
    assert.ok(line !== undefined, `${name} is missing in\n${text}`);
    return Number(line.split(' ').at(-1));
  };
  for (const [name, expected] of Object.entries({
    'petstore_requests_total{route="createPet",status="201"}': 1,
    'petstore_requests_total{route="createPet",status="400"}': 1,
    'petstore_requests_total{route="listPets",status="200"}': 1,
    'petstore_requests_total{route="listPets",status="429"}': 2,
    'petstore_requests_total{route="other",status="401"}': 1,
    'petstore_request_duration_seconds_count{route="listPets"}': 3,
    'petstore_request_duration_seconds_bucket{route="listPets",le="+Inf"}': 3,
    petstore_bans_total: 1,
    petstore_animals: 1,
    petstore_keys: 1,
  }))
    assert.equal(value(name), expected, name);
  for (const name of ['petstore_log_batch_duration_seconds_sum', 'petstore_event_loop_delay_max_seconds'])
    assert.ok(value(name) > 0, name);
  assert.ok(!text.includes('secret-path'), 'what a client chose is no label');

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
