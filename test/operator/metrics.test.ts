/** Metrics, the alerts on them, and the dashboard, held against a server that runs. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Serving } from '../program.ts';
import { until } from '../until.ts';
import { logged, missing, workplace } from './workplace.ts';

const pathOf = (name: string) => fileURLToPath(new URL(`../../docs/${name}`, import.meta.url));
const doc = (name: string) => readFileSync(pathOf(name), 'utf8');
const addressOf = (server: Serving) => logged(server, 'listening', 'metrics');
/** Of a metric without labels. */
const valueIn = (text: string, name: string) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);

test('the metrics tell what happened, in a form that Prometheus accepts, on a listener of their own', async (t) => {
  const { run, json, serve } = await workplace(t);
  const server = await serve('--metrics 127.0.0.1:0 --ban-after 2');
  const address = await addressOf(server);
  const { key } = await json<{ key: string }>('keys create --plan enterprise --per-minute 3 --per-day 100');
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const send = async (options = {}) => (await fetch(`${server.url}/pets`, { headers, ...options })).status;
  for (const [status, body] of [[201, '{"name":"Rex","categoryId":1}'], [400, '{}'], [200], [429], [429]])
    assert.equal(await send(body ? { method: 'POST', body } : {}), status);
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
    petstore_requests_counted_together_total: 0,
    petstore_bans_total: 1,
    petstore_animals: 1,
    petstore_keys: 1,
  }))
    assert.ok(text.includes(`\n${name} ${expected}\n`), `${name} is not ${expected} in\n${text}`);
  const { version, commit, runtime } = await json<Record<string, string>>('version');
  const labels = `version="${version}",commit="${commit}",runtime="${runtime}"`;
  assert.ok(text.includes(`\npetstore_build_info{${labels}} 1\n`));
  assert.match(text, /\npetstore_log_batch_duration_seconds_sum \S*[1-9]/);
  const cpu = valueIn(text, 'process_cpu_seconds_total');
  assert.ok(cpu > 0.01 && cpu < 100, `${cpu} s`);
  assert.ok(Math.abs(Date.now() / 1_000 - valueIn(text, 'process_start_time_seconds')) < 600);
  assert.ok(!text.includes('secret-path'), 'what a client chose is no label');
  const { error, status, output } = spawnSync('promtool', ['check', 'metrics'], { input: text, encoding: 'utf8' });
  if (error) t.diagnostic('not checked with promtool, which is not on this machine (Debian: prometheus)');
  else assert.deepEqual([status, output.join('')], [0, '']);

  for (const [where, method, status] of [
    [address, 'HEAD', 200],
    [address, 'POST', 404],
    [new URL('/v1/pets', address), 'GET', 404],
    [new URL('/metrics', server.url), 'GET', 404],
  ] as const)
    assert.equal((await fetch(where, { method })).status, status, `${method} ${where}`);
  const { host } = new URL(address);
  const taken = await run(`serve --port 0 --data other --metrics ${host}`);
  assert.deepEqual(
    [taken.exit, taken.stderr.includes(`${host} is in use by another program: choose another with --metrics`)],
    [1, true],
  );
});

const rules = doc('prometheus-rules.yaml');
const namesIn = (text: string) => new Set(text.match(/\b(?:petstore|process)_\w+\b/g));

test('the metrics tell of connections, the file, compactions, the newest backup, and all that docs/ make rules and graphs of', async (t) => {
  const { run, done, serve } = await workplace(t);
  const server = await serve('--metrics 127.0.0.1:0 --max-store-mb 7');
  const address = await addressOf(server);
  const scrape = async () => (await fetch(address)).text();
  const before = await scrape();
  for (const name of ['open_connections', 'compactions_total', 'last_backup_timestamp_seconds'])
    assert.equal(valueIn(before, `petstore_${name}`), 0, name);
  assert.equal(valueIn(before, 'petstore_store_max_bytes'), 7 * 2 ** 20);
  assert.ok(valueIn(before, 'petstore_store_file_bytes') > 0);
  const sockets = Array.from({ length: 3 }, () => connect(Number(new URL(server.url).port), '127.0.0.1'));
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  await until(async () => valueIn(await scrape(), 'petstore_open_connections') === 3); // the kernel accepts them first
  for (const socket of sockets) socket.destroy();
  await done('keys create --plan free');
  await done('compact');
  const began = Date.now() / 1_000;
  await done('backup one');
  const after = await scrape();
  assert.equal(valueIn(after, 'petstore_compactions_total'), 1);
  const backup = valueIn(after, 'petstore_last_backup_timestamp_seconds');
  assert.ok(backup >= began - 0.001 && backup <= Date.now() / 1_000, String(backup));
  assert.equal((await run('backup one')).exit, 1, 'it exists');
  assert.equal(valueIn(await scrape(), 'petstore_last_backup_timestamp_seconds'), backup, 'one that failed is none');

  await fetch(`${server.url}/pets`);
  const text = await scrape();
  const suffixed = [...namesIn(text)].map((name) => name.replace(/_(bucket|sum|count)$/, ''));
  const known = new Set([...namesIn(text), ...suffixed, 'petstore_postgres_up']);
  for (const name of [...namesIn(rules), ...namesIn(doc('grafana-dashboard.json'))]) assert.ok(known.has(name), name);
});

test('each alert fires where it should and only there', { skip: missing('promtool') }, () => {
  const tests = ['prometheus-rules.test.yaml', 'prometheus-rules.backup.test.yaml'];
  const { status, stdout, stderr } = spawnSync('promtool', ['test', 'rules', ...tests.map(pathOf)], {
    encoding: 'utf8',
  });
  assert.equal(status, 0, stdout + stderr);
  const alerts = [...rules.matchAll(/alert: (\w+)/g)].map(([, name]) => name);
  const cases = tests.map(doc).join('');
  assert.ok(alerts.length > 10);
  for (const alert of alerts) {
    assert.match(cases, new RegExp(`alertname: ${alert}\\n +exp_alerts: \\[\\]`), `${alert} where it is silent`);
    assert.match(cases, new RegExp(`alertname: ${alert}\\n +exp_alerts:\\n +- `), `${alert} where it fires`);
  }
});
