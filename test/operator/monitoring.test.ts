/** What an operator is given to watch the service with, held against a server that runs. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { type TestContext, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { openStore } from '../../src/store/file/open.ts';
import { freePort, PATIENT, type Serving } from '../program.ts';
import { workplace } from './workplace.ts';

const pathOf = (name: string) => fileURLToPath(new URL(`../../docs/${name}`, import.meta.url));
const doc = (name: string) => readFileSync(pathOf(name), 'utf8');
const missing = (program: string) =>
  spawnSync(program, ['--version']).error === undefined ? false : `there is no ${program} on this machine`;

interface RulesReply {
  data: { groups: { rules: { health: string; state: string }[] }[] };
}

async function addressOf(server: Serving): Promise<string> {
  while (!server.stderr().includes('"message":"listening"')) await once(server.process.stderr!, 'data');
  return /"metrics":"(http:[^"]+)"/.exec(server.stderr())![1];
}

/** Of a metric without labels. */
const valueIn = (text: string, name: string) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);

test('the metrics tell of the program, its connections, the file, compactions and backups', async (t) => {
  const { at, done, run, json, serve } = await workplace(t);
  const server = await serve('--metrics 127.0.0.1:0');
  const address = await addressOf(server);
  const scrape = async () => (await fetch(address)).text();
  const before = await scrape();
  const { version, commit, runtime } = await json<Record<string, string>>('version');
  const labels = `version="${version}",commit="${commit}",runtime="${runtime}"`;
  assert.ok(before.includes(`\npetstore_build_info{${labels}} 1\n`), before);
  assert.equal(valueIn(before, 'petstore_store_file_bytes'), statSync(at('data/store-000001.jsonl')).size);
  assert.equal(valueIn(before, 'petstore_open_connections'), 0);
  for (const name of ['compactions_total', 'compaction_seconds_total', 'last_backup_timestamp_seconds'])
    assert.equal(valueIn(before, `petstore_${name}`), 0, name);

  const { port } = new URL(server.url);
  const sockets = Array.from({ length: 3 }, () => connect(Number(port), '127.0.0.1'));
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  const connections = async () => valueIn(await scrape(), 'petstore_open_connections');
  while ((await connections()) < 3) await wait(10); // the kernel has taken them, the program soon does
  assert.equal(await connections(), 3);
  for (const socket of sockets) socket.destroy();
  await done('keys create --plan free');
  await done('compact');
  const began = Date.now() / 1_000;
  assert.equal((await run('backup one', { env: PATIENT })).stderr, '');
  const after = await scrape();
  assert.equal(valueIn(after, 'petstore_store_file_bytes'), statSync(at('data/store-000002.jsonl')).size);
  assert.equal(valueIn(after, 'petstore_compactions_total'), 1);
  assert.ok(valueIn(after, 'petstore_compaction_seconds_total') > 0.001);
  const toldAt = valueIn(after, 'petstore_last_backup_timestamp_seconds');
  assert.ok(toldAt >= began - 0.001 && toldAt <= Date.now() / 1_000, String(toldAt));

  assert.equal((await run('backup one')).exit, 1, 'it exists');
  assert.equal(valueIn(await scrape(), 'petstore_last_backup_timestamp_seconds'), toldAt, 'one that failed is none');
  server.process.kill('SIGSTOP');
  const untold = await run('backup two');
  server.process.kill('SIGCONT');
  assert.deepEqual([untold.exit, existsSync(at('two'))], [0, true], untold.stderr);
  assert.match(untold.stderr, /metrics do not show this backup: data is in use by a server that does not answer/);
  assert.equal((await server.stop()).exit, 0);
  const alone = await run('backup three');
  assert.deepEqual([alone.exit, alone.stderr], [0, ''], 'without a server there is nobody to tell');
});

test('a compaction that failed is counted as that, and one that was given up is not', async (t) => {
  const { at } = await workplace(t);
  let tried = 0;
  const compact = () => Promise.reject(new Error(`no ${++tried}`));
  const { store, journal } = await openStore(at('data'), { compact });
  await assert.rejects(journal.compact(), /^Error: no 1$/);
  journal.giveUp();
  await assert.rejects(journal.compact(), /is being stopped/);
  assert.equal(tried, 1, 'it was not even begun');
  assert.deepEqual(journal.compactions.counts, { done: 0, failed: 1, ms: 0 });
  await store.close();
});

const rules = doc('prometheus-rules.yaml');
const dashboard = JSON.parse(doc('grafana-dashboard.json'));
const queries: string[] = dashboard.panels.flatMap(({ targets }: { targets: { expr: string }[] }) =>
  targets.map(({ expr }) => expr),
);
const namesIn = (text: string) => new Set(text.match(/\b(?:petstore|process)_\w+\b/g));

test('each alert fires where it should and only there', { skip: missing('promtool') }, () => {
  const tests = ['prometheus-rules.test.yaml', 'prometheus-rules.backup.test.yaml'];
  const words = ['test', 'rules', ...tests.map(pathOf)];
  const { status, stdout, stderr } = spawnSync('promtool', words, { encoding: 'utf8' });
  assert.equal(status, 0, stdout + stderr);
  const alerts = [...rules.matchAll(/alert: (\w+)/g)].map(([, name]) => name);
  const cases = tests.map(doc).join('');
  assert.ok(alerts.length > 10);
  for (const alert of alerts) {
    assert.match(
      cases,
      new RegExp(`alertname: ${alert}\\n +exp_alerts: \\[\\]`),
      `${alert} is tried where it is silent`,
    );
    assert.match(cases, new RegExp(`alertname: ${alert}\\n +exp_alerts:\\n +- `), `${alert} is tried where it fires`);
  }
});

/** A Prometheus that scrapes `target` every second, under the rules of the documents. */
async function startPrometheus(t: TestContext, at: (name: string) => string, target: string): Promise<string> {
  const scrape = `{ job_name: petstore, static_configs: [{ targets: ['${target}'] }] }`;
  const global = 'global: { scrape_interval: 1s, evaluation_interval: 1s }';
  const lines = [global, `rule_files: ['${pathOf('prometheus-rules.yaml')}']`, `scrape_configs: [${scrape}]`];
  await writeFile(at('prometheus.yml'), `${lines.join('\n')}\n`);
  const listen = `127.0.0.1:${await freePort()}`;
  const options = {
    'config.file': at('prometheus.yml'),
    'storage.tsdb.path': at('tsdb'),
    'web.listen-address': listen,
  };
  const words = Object.entries(options).map(([name, value]) => `--${name}=${value}`);
  const prometheus = spawn('prometheus', [...words, '--log.level=error'], { stdio: 'ignore' });
  const ended = once(prometheus, 'exit');
  t.after(() => prometheus.kill('SIGTERM') && ended);
  const isReady = () =>
    fetch(`http://${listen}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  while (!(await isReady())) {
    assert.equal(prometheus.exitCode, null, 'prometheus did not start');
    await wait(100);
  }
  return `http://${listen}`;
}

test('every query of the dashboard gives a series of a server that is scraped, and the rules know its metrics', {
  skip: missing('prometheus'),
  timeout: 120_000,
}, async (t) => {
  const { at, done, headers: headersOf, serve } = await workplace(t);
  const server = await serve('--metrics 127.0.0.1:0');
  const address = await addressOf(server);
  const prometheus = await startPrometheus(t, at, new URL(address).host);
  const headers = await headersOf();
  const create = () => fetch(`${server.url}/pets`, { method: 'POST', headers, body: '{"name":"Rex","categoryId":1}' });
  assert.equal((await create()).status, 201);
  await done('compact');
  await done('backup one');
  const told = namesIn(await (await fetch(address)).text());
  for (const name of [...namesIn(rules), ...queries.flatMap((query) => [...namesIn(query)])])
    assert.ok(told.has(name) || name === 'petstore_postgres_up', `${name} is told`);

  const seriesOf = async (query: string) => {
    const words = { $__rate_interval: '1m', $job: 'petstore', $instance: '.+' };
    const plain = Object.entries(words).reduce((text, [word, value]) => text.replaceAll(word, value), query);
    const reply = await fetch(`${prometheus}/api/v1/query?query=${encodeURIComponent(plain)}`);
    const { data, error } = (await reply.json()) as {
      data?: { result: { value: [number, string] }[] };
      error?: string;
    };
    assert.equal(error, undefined, query);
    return data!.result.filter(({ value: [, value] }) => Number.isFinite(Number(value)));
  };
  let unseen = queries;
  for (const end = performance.now() + 60_000; unseen.length > 0; await wait(500)) {
    assert.equal((await create()).status, 201);
    const found = await Promise.all(unseen.map(seriesOf));
    unseen = unseen.filter((_, at) => found[at].length === 0);
    assert.ok(performance.now() < end, `these give no series:\n${unseen.join('\n')}`);
  }
  const loaded = (await (await fetch(`${prometheus}/api/v1/rules`)).json()) as RulesReply;
  const states = loaded.data.groups.flatMap(({ rules }) => rules.map(({ health, state }) => `${health} ${state}`));
  assert.ok(states.length > 10);
  const isQuiet = (state: string) => ['ok inactive', 'ok pending'].includes(state); // a busy machine may begin an alert
  assert.deepEqual(
    states.filter((state) => !isQuiet(state)),
    [],
  );
});
