/** The program on a database: commands, several servers, their ends. Without --store, none of it is loaded. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { it, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { program, type Serving, serving, temporary } from '../../program.ts';
import { onDatabase } from './database.ts';
import { replica, until } from './replicas.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

it('without --store nothing of the engine on PostgreSQL is loaded', async (t) => {
  const dir = await temporary(t);
  const words = `--import tsx ${ROOT}extras/main.ts serve --port 0 --data ${dir}/data`.split(' ');
  const env = { ...process.env, NODE_V8_COVERAGE: path.join(dir, 'loaded') };
  const child = spawn(process.execPath, words, { env, cwd: ROOT, stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  child.kill('SIGTERM');
  await once(child, 'close');
  const reports = readdirSync(path.join(dir, 'loaded')); // one of each thread
  const loaded = reports.flatMap((one) => JSON.parse(readFileSync(path.join(dir, 'loaded', one), 'utf8')).result);
  const urls = loaded.map(({ url }: { url: string }) => url).join('\n');
  assert.match(urls, /\/src\/store\/file\/store\.ts$/m);
  assert.doesNotMatch(urls, /\/extras\/postgres\/(?!extra\.ts)|\/node_modules\/pg[/-]/);
});

it('no value of --store is printed, whatever is wrong with it', async (t) => {
  const cwd = await temporary(t);
  const ways = [['verify', '--store'], ['verify'], ['serve', '--port', '0', '--store']];
  const runs = [
    'postgres://secret:secret@%2Fsecret/secret',
    'postgres://u:secret@secret.invalid/d',
    'mysql://u:secret@h/d',
    'postgres://u:secret@h',
    'postgres://u:12/secret@h/d',
    'postgres://secret:12#secret@h/d',
  ].map((store, at) => [...ways[at % ways.length], store]);
  const check = async (words: string[]) => {
    const { exit, stdout, stderr } = await program(words, { cwd });
    assert.ok(exit === 1 || exit === 2, `${words}: ${exit}`);
    assert.doesNotMatch(stdout + stderr, /secret/, `${words}`);
  };
  const refused = ['verify', '--store', 'postgres://secret:secret@127.0.0.1:1/secret']; // a server would wait for it
  await Promise.all([refused, ...runs].map(check));
});

onDatabase('the program on PostgreSQL', (database) => {
  const ask = (server: Serving, target: string, key: string, init: RequestInit = {}) =>
    fetch(server.url + target, {
      ...init,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...init.headers },
    });

  async function servers(t: TestContext, schema: string, count: number, ...words: string[]) {
    const store = ['--store', database().url(schema)];
    const all = await Promise.all(Array.from({ length: count }, () => serving(t, [...store, ...words])));
    return { store, all };
  }

  it('every command works beside two servers, and what it did is in force at once', async (t) => {
    const dir = await temporary(t);
    const seed = path.join(ROOT, 'data/seed.json');
    // Both at once: one makes the tables, one seeds, one makes the key.
    const { store, all } = await servers(t, 'commands', 2, '--seed', seed, '--first-key', 'pro');
    const [a, b] = all;
    assert.equal(all.filter(({ key }) => key !== '').length, 1);
    const done = async (...words: string[]) => {
      const { exit, stdout, stderr } = await program([...words, ...store]);
      assert.equal(exit, 0, `${words}: ${stderr}`);
      return stdout;
    };
    const made = JSON.parse(await done('keys', 'create', '--plan', 'free', '--json'));
    assert.equal((await ask(b, '/pets', made.key)).status, 200);
    assert.match(await done('keys', 'list'), new RegExp(made.id));
    const listed: { id: string; minute: { remaining: number } }[] = JSON.parse(await done('keys', 'list', '--json'));
    assert.equal(listed.find(({ id }) => id === made.id)?.minute.remaining, 59);
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
    assert.match(await done('compact'), /PostgreSQL keeps its tables compact by itself/);
    const { digest } = JSON.parse(await done('verify', '--json'));
    const backup = path.join(dir, 'backup');
    assert.equal(JSON.parse(await done('backup', backup, '--json')).digest, digest);
    const restored = await program(['restore', backup, '--data', path.join(dir, 'data'), '--json']);
    assert.equal(JSON.parse(restored.stdout).digest, digest, restored.stderr);
    const refused = await program(['restore', backup, ...store]);
    assert.deepEqual([refused.exit, /not empty/.test(refused.stderr)], [1, true]);
    for (const server of all) assert.equal((await server.stop()).exit, 0);
  });

  it('two servers on one key: a limit of N admits N, and one Idempotency-Key makes one thing', async (t) => {
    const { store, all } = await servers(t, 'both', 2);
    const limits = ['--per-minute', '120', '--per-day', '5000'];
    const { stdout } = await program(['keys', 'create', '--plan', 'enterprise', ...limits, '--json', ...store]);
    const { key } = JSON.parse(stdout);
    const headers = { 'idempotency-key': 'once' };
    const post = (server: Serving, target: string, body: object, own = {}) =>
      ask(server, target, key, { method: 'POST', body: JSON.stringify(body), headers: own });
    const many = <T>(count: number, work: (server: Serving) => Promise<T>) =>
      Promise.all(Array.from({ length: count }, (_, at) => work(all[at % 2])));

    const made = await many(20, (server) => post(server, '/pets', { name: 'one', categoryId: 1 }, headers));
    for (const { status } of made) assert.equal(status, 201);
    const pets = await Promise.all(made.map((reply) => reply.json()));
    assert.deepEqual(new Set(pets.map((pet) => (pet as { id: number }).id)), new Set([1]));
    const orders = await many(20, (server) => post(server, '/store/orders', { petId: 1 }));
    const statuses = orders.map(({ status }) => status).sort();
    assert.deepEqual(statuses, [201, ...Array(19).fill(409)]);

    const replies = await many(150, (server) => ask(server, '/pets', key));
    const admitted = replies
      .filter(({ status }) => status === 200)
      .map(({ headers }) => headers.get('x-ratelimit-remaining'));
    assert.equal(admitted.length, 120 - 40);
    assert.equal(new Set(admitted).size, admitted.length, 'each remaining is told once');
    for (const { status } of replies) assert.ok(status === 200 || status === 429, `${status}`);
  });

  it('while the database is away: 503, /readyz 503, /healthz 200; then it goes on by itself', async (t) => {
    const { store, all } = await servers(t, 'away', 1);
    const [server] = all;
    const { key } = JSON.parse((await program(['keys', 'create', '--plan', 'pro', '--json', ...store])).stdout);
    const status = async (target: string) => (await fetch(new URL(target, server.url))).status;
    assert.equal((await ask(server, '/pets', key)).status, 200);
    await database().kill();
    const reply = await ask(server, '/pets', key);
    assert.deepEqual([reply.status, reply.headers.get('retry-after')], [503, '1']);
    assert.equal(((await reply.json()) as { code: string }).code, 'unavailable');
    await until(async () => (await status('/readyz')) === 503);
    assert.equal(await status('/healthz'), 200);
    await database().start();
    await until(async () => (await status('/readyz')) === 200);
    assert.equal((await ask(server, '/pets', key)).status, 200);
    const { stderr } = await server.stop();
    assert.match(stderr, /requests are refused: the database: /);
    assert.doesNotMatch(stderr, / at .*\.ts:/);
  });

  it('damage ends commands with status 3, and another history the servers with status 1', async (t) => {
    const { store, all } = await servers(t, 'damaged', 2);
    const made = await program(['keys', 'create', '--plan', 'free', '--json', ...store]);
    const { id, key } = JSON.parse(made.stdout);
    for (const server of all) await ask(server, '/pets', key); // it has read the batch that is changed below
    await database().query('DELETE FROM damaged.usage');
    for (const words of [['keys', 'lift', id], ['verify']]) {
      const { exit, stderr } = await program([...words, ...store]);
      assert.deepEqual(
        [exit, /^damaged data: the database: key k1 has no row of usage/.test(stderr)],
        [3, true],
        stderr,
      );
    }
    await database().query(
      "UPDATE damaged.changes SET id = 'other' WHERE batch = 1; UPDATE damaged.head SET id = 'other'",
    );
    for (const { ended } of all) {
      const { exit, stderr } = await ended;
      assert.equal(exit, 1);
      assert.match(stderr, /the history in the database is not the one that this replica has read/);
      assert.doesNotMatch(stderr, /disk| at .*\.ts:/);
    }
  });

  it('a server that finds the last batch gone ends with status 3, at its start and later', async (t) => {
    const { store, all } = await servers(t, 'cut', 1, '--first-key', 'free');
    await database().query('DELETE FROM cut.changes WHERE batch = (SELECT batch FROM cut.head)');
    const started = await program(['serve', '--port', '0', ...store]);
    for (const { exit, stderr } of [await all[0].ended, started]) {
      assert.deepEqual([exit, /damaged data: the database: the head is not the last batch/.test(stderr)], [3, true]);
      assert.doesNotMatch(stderr, / at .*\.ts:/);
    }
  });

  it('a newer version takes the store over: the servers of this one end with status 1, and commands refuse', async (t) => {
    const { store, all } = await servers(t, 'newer', 2, '--first-key', 'free');
    const key = all[0].key || all[1].key;
    const isNewer = /written by a newer version of petstore, in format 6/;
    await database().query('UPDATE newer.head SET format = 6');
    for (const server of all) {
      const init = { method: 'POST', body: JSON.stringify({ name: 'late', categoryId: 1 }) };
      await ask(server, '/pets', key, init).catch(() => {}); // the end of its process may be quicker
      const { exit, stderr } = await server.ended;
      assert.deepEqual([exit, isNewer.test(stderr), /damage/.test(stderr)], [1, true, false], stderr);
    }
    for (const words of [['serve', '--port', '0'], ['verify'], ['backup', '-']]) {
      const { exit, stderr } = await program([...words, ...store]);
      assert.deepEqual([exit, isNewer.test(stderr), /damage/.test(stderr)], [1, true, false], stderr);
    }
  });

  it('a command that only looks makes no store', async (t) => {
    const { exit, stderr } = await program(['verify', '--store', database().url('none')]);
    assert.deepEqual([exit, /there is no store in schema none/.test(stderr)], [1, true], stderr);
    await assert.rejects(replica(t, database().url('none'), { mustExist: true }), /there is no store/);
  });
});
