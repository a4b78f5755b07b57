/** The program on a database: every command, several servers, their ends. And without --store, not a line of it is loaded. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { it } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { program, type Serving, serving, temporary } from '../program.ts';
import { onDatabase } from './database.ts';
import { replica } from './replicas.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SCALE = Number(process.env.FAULTS_SCALE ?? 1);
const KILLS = SCALE > 1 ? 10 : 3;

it('without --store nothing of the engine on PostgreSQL is loaded', async (t) => {
  const dir = await temporary(t);
  const words = `--import tsx ${ROOT}src/main.ts serve --port 0 --data ${dir}/data`.split(' ');
  const env = { ...process.env, NODE_V8_COVERAGE: path.join(dir, 'loaded') };
  const child = spawn(process.execPath, words, { env, cwd: ROOT, stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  child.kill('SIGTERM');
  await once(child, 'close');
  const [report] = readdirSync(path.join(dir, 'loaded'));
  const { result } = JSON.parse(readFileSync(path.join(dir, 'loaded', report), 'utf8')) as {
    result: { url: string }[];
  };
  const urls = result.map(({ url }) => url);
  assert.ok(urls.some((url) => url.endsWith('/src/operator/file-engine.ts')));
  assert.deepEqual(
    urls.filter((url) => url.includes('/src/postgres/') || /\/node_modules\/pg[/-]/.test(url)),
    [],
  );
});

onDatabase('the program on PostgreSQL', (database) => {
  const makeKey = async (store: string[], perMinute: number, perDay: number): Promise<string> => {
    const limits = ['--per-minute', String(perMinute), '--per-day', String(perDay)];
    const made = await program(['keys', 'create', '--plan', 'enterprise', ...limits, '--json', ...store]);
    return JSON.parse(made.stdout).key;
  };
  const ask = (server: Serving, target: string, key: string, init: RequestInit = {}) =>
    fetch(server.url + target, { ...init, headers: { authorization: `Bearer ${key}`, ...init.headers } });
  const post = (server: Serving, key: string, name: string) =>
    ask(server, '/pets', key, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': name },
      body: JSON.stringify({ name, categoryId: 1 }),
    });

  it('every command works beside two servers, and what it did is in force at once', async (t) => {
    const dir = await temporary(t);
    const store = ['--store', database().url('commands')];
    const seed = path.join(ROOT, 'data/seed.json');
    const starting = [1, 2].map(() => serving(t, [...store, '--seed', seed, '--first-key', 'pro']));
    const [a, b] = await Promise.all(starting); // both at once: one makes the tables, one seeds, one makes the key
    assert.equal([a, b].filter(({ key }) => key !== '').length, 1);
    const first = a.key || b.key;
    const run = async (...words: string[]) => {
      const { exit, stdout, stderr } = await program([...words, ...store]);
      assert.equal(exit, 0, `${words}: ${stderr}`);
      return stdout;
    };
    const made = JSON.parse(await run('keys', 'create', '--plan', 'free', '--json'));
    assert.equal((await ask(b, '/pets', made.key)).status, 200);
    assert.match(await run('keys', 'list'), new RegExp(made.id));
    assert.equal(JSON.parse(await run('keys', 'show', made.id, '--json')).minute.remaining, 59);
    await run('keys', 'plan', made.id, 'pro');
    assert.equal((await ask(a, '/pets', made.key)).headers.get('x-ratelimit-limit'), '300');
    await run('keys', 'lift', made.id);
    const rotated = JSON.parse(await run('keys', 'rotate', made.id, '--grace', '0s', '--json'));
    assert.deepEqual(
      [(await ask(b, '/pets', made.key)).status, (await ask(a, '/pets', rotated.key)).status],
      [401, 200],
    );
    await run('keys', 'revoke', made.id);
    assert.equal((await ask(b, '/pets', rotated.key)).status, 401);

    writeFileSync(path.join(dir, 'more'), '{"name":"imported","categoryId":9007199254740993}\n');
    await run('import', path.join(dir, 'more'));
    const exported = await run('export');
    const last = exported.trimEnd().split('\n').at(-1)!;
    assert.match(last, /"imported","categoryId":9007199254740993/);
    assert.equal((await ask(a, `/pets/${JSON.parse(last).id}`, first)).status, 200);
    await run('compact');
    const verified = await run('verify', '--json');
    const backup = path.join(dir, 'backup');
    assert.equal(JSON.parse(await run('backup', backup, '--json')).digest, JSON.parse(verified).digest);
    const restored = await program(['restore', backup, '--data', path.join(dir, 'data'), '--json']);
    assert.equal(JSON.parse(restored.stdout).digest, JSON.parse(verified).digest, restored.stderr);
    const refused = await program(['restore', backup, ...store]);
    assert.deepEqual([refused.exit, /not empty/.test(refused.stderr)], [1, true]);
    assert.equal((await program(['repair', ...store])).exit, 1);
    for (const server of [a, b]) assert.equal((await server.stop()).exit, 0);
  });

  it('a key that ends at one replica is refused by the next request at another', async (t) => {
    const store = ['--store', database().url('ended')];
    const server = await serving(t, store);
    const beside = await replica(t, store[1]);
    for (let n = 0; n < 5; n++) {
      const key = await makeKey(store, 100, 100);
      assert.equal((await ask(server, '/pets', key)).status, 200);
      await beside.limiter.fresh();
      await beside.store.write((ahead) => {
        const last = [...ahead.allKeys()].at(-1)!;
        return { op: 'setKey', key: { ...last, secrets: [] } };
      });
      assert.equal((await ask(server, '/pets', key)).status, 401);
    }
  });

  it('the lab of one server sees at once what was done at another', async (t) => {
    const store = ['--store', database().url('lab')];
    const lab = [...store, '--lab', '--environment', 'staging'];
    const create = ['keys', 'create', '--plan', 'free', '--environment', 'staging', '--json', ...store];
    const [a, b] = await Promise.all([1, 2].map(() => serving(t, lab)));
    const clock = (server: Serving, key: string, advance?: string) =>
      ask(server, '/../lab/clock', key, {
        ...(advance && { method: 'POST', body: JSON.stringify({ advance }) }),
        headers: { 'content-type': 'application/json' },
      });
    const { id, key } = JSON.parse((await program(create)).stdout);
    for (const [at, server] of [a, b, a, b].entries()) {
      const other = server === a ? b : a;
      assert.equal((await clock(server, key, '1s')).status, 200);
      const seen = await clock(other, key);
      assert.deepEqual([await seen.json(), seen.headers.get('x-lab-clock')], [{ ahead: at + 1 }, `+${at + 1}`]);
    }
    const graded = await program(['grade', id, ...store]);
    assert.deepEqual([graded.exit, /with --store ask GET \/lab\/grade/.test(graded.stderr)], [1, true]);
    await program(['keys', 'revoke', id, ...store]);
    for (const server of [a, b]) assert.equal((await clock(server, key)).status, 401);
  });

  it('a server has a long log compacted, names who holds others up, and ends when its history is another one', async (t) => {
    const url = database().url('long');
    const writer = await replica(t, url);
    const name = 'n'.repeat(2 ** 20);
    for (let n = 0; n < 66; n++) {
      await writer.store.write(() => ({ op: 'setCategory', category: { id: n, name } }));
    }
    await writer.close();
    const client = new pg.Client({ host: '127.0.0.1', port: database().port, user: 'petstore', database: 'postgres' });
    await client.connect();
    await client.query('BEGIN');
    const [{ pid }] = (await client.query('SELECT pg_backend_pid() AS pid')).rows;
    await wait(5_100);
    const server = await serving(t, ['--store', url]);
    const until = async (what: () => unknown) => {
      while (!(await what())) await wait(50);
    };
    await until(async () => (await database().query('SELECT batch FROM long.snapshots')).length > 0);
    await until(() => server.stderr().includes(`process ${pid} of petstore`));
    await client.end();
    await database().query("UPDATE long.log SET id = 'other' WHERE batch = 66; UPDATE long.head SET id = 'other'");
    const { exit, stderr } = await server.ended;
    assert.equal(exit, 1);
    assert.match(stderr, /the log in the database is not the one/);
    assert.doesNotMatch(stderr, /disk/);
  });

  it('four servers share one key: 1,000 a minute are 1,000, and each remaining is told once', async (t) => {
    const store = ['--store', database().url('shared')];
    const key = await makeKey(store, 1_000, 5_000);
    const servers = await Promise.all([1, 2, 3, 4].map(() => serving(t, store)));
    const told: number[] = [];
    let refused = 0;
    const client = async (server: Serving) => {
      for (let n = 0; n < 35; n++) {
        const reply = await ask(server, '/pets?limit=1', key);
        await reply.arrayBuffer();
        if (reply.status === 200) told.push(Number(reply.headers.get('x-ratelimit-remaining')));
        else refused++;
      }
    };
    await Promise.all(Array.from({ length: 32 }, (_, at) => client(servers[at % 4])));
    assert.deepEqual(
      told.sort((a, b) => a - b),
      Array.from({ length: 1_000 }, (_, at) => at),
    );
    assert.equal(refused, 120);
  });

  it(`kill -9 of a server ${KILLS} times, then of the database: nothing acknowledged is lost or doubled`, async (t) => {
    const store = ['--store', database().url('kills')];
    const key = await makeKey(store, 1_000_000, 1_000_000);
    const servers = await Promise.all([1, 2].map(() => serving(t, store)));
    const acknowledged = new Map<string, number>();
    let isOver = false;
    /** Each asks again under the same Idempotency-Key, at whichever server answers. */
    const client = async (n: number) => {
      for (let made = 0, tries = 0; !isOver; tries++) {
        const name = `${n}-${made}`;
        const reply = await post(servers[(n + tries) % 2], key, name).catch(() => undefined);
        if (reply === undefined) continue;
        const body = (await reply.json()) as { id: number; code?: string };
        assert.ok(reply.status === 201 || reply.status === 503 || body.code === 'idempotency_in_flight', body.code);
        if (reply.status !== 201) continue;
        acknowledged.set(name, body.id);
        made++;
      }
    };
    const clients = Promise.all(Array.from({ length: 8 }, (_, n) => client(n)));
    t.after(() => (isOver = true));
    for (let kill = 0; kill < KILLS; kill++) {
      const before = acknowledged.size;
      await servers[kill % 2].kill();
      servers[kill % 2] = await serving(t, store);
      while (acknowledged.size < before + 50) await wait(10);
    }
    await database().kill();
    const healthy = await fetch(new URL('/healthz', servers[0].url));
    await wait(1_100);
    const ready = await fetch(new URL('/readyz', servers[0].url));
    assert.deepEqual([healthy.status, ready.status], [200, 503]);
    const reply = await ask(servers[0], '/pets', key);
    assert.deepEqual([reply.status, reply.headers.get('retry-after')], [503, '1']);
    assert.equal(((await reply.json()) as { code: string }).code, 'unavailable');
    await database().start();
    for (const before = acknowledged.size; acknowledged.size < before + 50; ) {
      await wait(10);
    }
    isOver = true;
    await clients;
    const lines = (await program(['export', ...store])).stdout.trimEnd().split('\n');
    const pets = lines.map((line) => JSON.parse(line) as { id: number; name: string });
    assert.equal(new Set(pets.map(({ name }) => name)).size, pets.length);
    const ids = new Map(pets.map(({ name, id }) => [name, id]));
    for (const [name, id] of acknowledged) assert.equal(ids.get(name), id, name);
  });
});
