/** The program on a database: API, commands, several servers, their ends. Without --store, none of it is loaded. */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import pg from 'pg';
import { injected, program, type Serving, serving, temporary, whyNoStrace } from '../program.ts';
import { onDatabase } from './database.ts';
import { replica, setKey, until } from './replicas.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const run = promisify(execFile);

it('without --store nothing of the engine on PostgreSQL is loaded', async (t) => {
  const dir = await temporary(t);
  const words = `--import tsx ${ROOT}src/main.ts serve --port 0 --data ${dir}/data`.split(' ');
  const env = { ...process.env, NODE_V8_COVERAGE: path.join(dir, 'loaded') };
  const child = spawn(process.execPath, words, { env, cwd: ROOT, stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  child.kill('SIGTERM');
  await once(child, 'close');
  const [report] = readdirSync(path.join(dir, 'loaded'));
  const { result } = JSON.parse(readFileSync(path.join(dir, 'loaded', report), 'utf8'));
  const urls = result.map(({ url }: { url: string }) => url).join('\n');
  assert.match(urls, /\/src\/operator\/file-engine\.ts$/m);
  assert.doesNotMatch(urls, /\/src\/postgres\/|\/node_modules\/pg[/-]/);
});

onDatabase('the program on PostgreSQL', (database) => {
  const ask = (server: Serving, target: string, key: string, init: RequestInit = {}) =>
    fetch(server.url + target, {
      ...init,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...init.headers },
    });

  it('the API is the same: what a client sees does not tell the engine', async () => {
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const words = ['--import', 'tsx', '--test', '--test-reporter=tap', 'test/api.test.ts'];
    const store = database().url('').replace('?schema=', '');
    const options = { cwd: ROOT, env: { ...env, PETSTORE_TEST_STORE: store } };
    await run(process.execPath, words, options).catch(({ stdout }) => assert.fail(stdout));
    const tables = await database().query("SELECT FROM pg_tables WHERE tablename = 'log'");
    assert.ok(tables.length > 3, 'it ran on the database');
  });

  it('a new key is one of production unless told: the command asks no replica, and its help says so', async (t) => {
    const store = ['--store', database().url('environments')];
    const { url } = await serving(t, [...store, '--environment', 'staging']);
    for (const [words, status, prefix] of [
      [[], 401, 'ps_live_'],
      [['--environment', 'staging'], 200, 'ps_test_'],
    ] as const) {
      const made = await program(['keys', 'create', '--plan', 'free', '--json', ...words, ...store]);
      const { key } = JSON.parse(made.stdout);
      assert.ok(key.startsWith(prefix), made.stderr);
      assert.equal((await fetch(`${url}/pets`, { headers: { authorization: `Bearer ${key}` } })).status, status);
    }
    const { stdout } = await program(['keys', 'create', '--help']);
    assert.match(stdout.replace(/\s+/g, ' '), /production if none runs or the store is in PostgreSQL\)/);
  });

  it('every command works beside two servers, and what it did is in force at once', async (t) => {
    const dir = await temporary(t);
    const store = ['--store', database().url('commands')];
    const seed = path.join(ROOT, 'data/seed.json');
    const starting = [1, 2].map(() => serving(t, [...store, '--seed', seed, '--first-key', 'pro']));
    const [a, b] = await Promise.all(starting); // both at once: one makes the tables, one seeds, one makes the key
    assert.equal([a, b].filter(({ key }) => key !== '').length, 1);
    const done = async (...words: string[]) => {
      const { exit, stdout, stderr } = await program([...words, ...store]);
      assert.equal(exit, 0, `${words}: ${stderr}`);
      return stdout;
    };
    const made = JSON.parse(await done('keys', 'create', '--plan', 'free', '--json'));
    assert.equal((await ask(b, '/pets', made.key)).status, 200);
    assert.match(await done('keys', 'list'), new RegExp(made.id));
    assert.equal(JSON.parse(await done('keys', 'show', made.id, '--json')).minute.remaining, 59);
    await done('keys', 'plan', made.id, 'pro');
    assert.equal((await ask(a, '/pets', made.key)).headers.get('x-ratelimit-limit'), '300');
    await done('keys', 'lift', made.id);
    const { key } = JSON.parse(await done('keys', 'rotate', made.id, '--grace', '0s', '--json'));
    assert.deepEqual([(await ask(b, '/pets', made.key)).status, (await ask(a, '/pets', key)).status], [401, 200]);
    await done('keys', 'revoke', made.id);
    assert.equal((await ask(b, '/pets', key)).status, 401);

    writeFileSync(path.join(dir, 'more'), '{"name":"imported","categoryId":9007199254740993}\n');
    await done('import', path.join(dir, 'more'));
    const last = (await done('export')).trimEnd().split('\n').at(-1)!;
    assert.match(last, /"imported","categoryId":9007199254740993/);
    assert.equal((await ask(a, `/pets/${JSON.parse(last).id}`, a.key || b.key)).status, 200);
    await done('compact');
    const { digest } = JSON.parse(await done('verify', '--json'));
    const backup = path.join(dir, 'backup');
    assert.equal(JSON.parse(await done('backup', backup, '--json')).digest, digest);
    const restored = await program(['restore', backup, '--data', path.join(dir, 'data'), '--json']);
    assert.equal(JSON.parse(restored.stdout).digest, digest, restored.stderr);
    const refused = await program(['restore', backup, ...store]);
    assert.deepEqual([refused.exit, /not empty/.test(refused.stderr)], [1, true]);
    for (const server of [a, b]) assert.equal((await server.stop()).exit, 0);
  });

  it('a backup that a signal interrupts leaves no file behind', { skip: whyNoStrace() ?? false }, async (t) => {
    const cwd = await temporary(t);
    const store = ['--store', database().url('interrupted')];
    assert.equal((await program(['keys', 'create', '--plan', 'free', ...store])).exit, 0);
    const ran = await injected('fdatasync:signal=SIGINT:when=1', ['backup', 'b', ...store], { cwd });
    assert.deepEqual([ran.exit, ran.stdout, readdirSync(cwd)], [1, '', ['trace']]);
    assert.equal(ran.stderr, 'backup was interrupted: look before you repeat it\n');
  });

  it('the lab of one server sees at once what was done at another, and that a key has ended', async (t) => {
    const store = ['--store', database().url('lab')];
    const lab = [...store, '--lab', '--environment', 'staging'];
    const a = await serving(t, [...lab, '--first-key', 'free']);
    const b = await serving(t, lab);
    const { key } = a;
    const clock = (server: Serving, init?: RequestInit) => ask(server, '/../lab/clock', key, init);
    for (const [at, server] of [a, b, a, b].entries()) {
      assert.equal((await clock(server, { method: 'POST', body: '{"advance":"1s"}' })).status, 200);
      const seen = await clock(server === a ? b : a);
      assert.deepEqual([await seen.json(), seen.headers.get('x-lab-clock')], [{ ahead: at + 1 }, `+${at + 1}`]);
    }
    const graded = await program(['grade', 'k1', ...store]);
    assert.deepEqual([graded.exit, /with --store by GET \/lab\/grade/.test(graded.stderr)], [1, true]);
    const beside = await replica(t, store[1]);
    await setKey(beside.store, { ...beside.store.read.keys.get('k1'), secrets: [] });
    assert.deepEqual([(await ask(a, '/pets', key)).status, (await clock(b)).status], [401, 401]);
  });

  it('a server has a long log compacted, names who holds others up, and ends when its history is another one', async (t) => {
    const url = database().url('long');
    const writer = await replica(t, url);
    await setKey(writer.store, { secrets: [{ digest: 'n'.repeat(2 ** 20) }] });
    await writer.close();
    await database().query(`SET search_path = long; UPDATE head SET batch = 66, id = 'b66';
      INSERT INTO log SELECT n, 'b' || n, body FROM log, generate_series(2, 66) n WHERE batch = 1`);
    const client = new pg.Client({ host: '127.0.0.1', port: database().port, user: 'petstore', database: 'postgres' });
    await client.connect();
    await client.query('BEGIN');
    const [{ pid }] = (await client.query('SELECT pg_backend_pid() AS pid')).rows;
    const isLong = `SELECT FROM pg_stat_activity WHERE pid = ${pid} AND xact_start < now() - interval '5 seconds'`;
    await until(async () => (await database().query(isLong)).length > 0);
    const server = await serving(t, ['--store', url]);
    await until(async () => (await database().query('SELECT batch FROM long.snapshots')).length > 0);
    await until(() => server.stderr().includes(`process ${pid} of petstore`));
    await client.end();
    await database().query("UPDATE long.log SET id = 'other' WHERE batch = 66; UPDATE long.head SET id = 'other'");
    const { exit, stderr } = await server.ended;
    assert.equal(exit, 1);
    assert.match(stderr, /the log in the database is not the one/);
    assert.doesNotMatch(stderr, /disk/);
  });
});
